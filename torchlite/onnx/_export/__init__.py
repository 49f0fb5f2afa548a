"""Export rules: for each ATen op a function that adds its ONNX nodes to an `OnnxGraphBuilder`."""
