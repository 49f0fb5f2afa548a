"""Programs of the aten dialect as ONNX: for each op a function that writes it in ONNX's, into a `Writer`."""
