"""What the op records do not say and tools/make_stubs.py needs: the types of plain parameters and of results."""

from __future__ import annotations

# The stubs in torchlite/_stubs, and the op families (files of torchlite/_ops) whose functions and methods each has.
ROOMS = {
    "elementwise": (
        "activation", "binary", "comparison", "fake_quantize", "grad_scaling", "piecewise_activation", "pointwise",
        "special", "unary",
    ),
    "reductions": ("reduce", "segment_reduce", "statistics", "histogram", "scan", "sort", "softmax"),
    "layers": (
        "conv", "ctc_loss", "dropout", "embedding", "linear", "loss", "margin_loss", "normalization", "pad", "pooling",
        "resample", "rnn", "vision", "attention", "cross_entropy",
    ),
    "linear": (
        "matmul", "grouped_matmul", "tensor_products", "einsum", "fft", "stft", "covariance", "linalg_decomp",
        "linalg_det", "linalg_lu", "linalg_norm", "linalg_solve", "linalg_spectral", "scaled_matmul", "weight_only",
    ),
    "arrangement": (
        "internal_view_ops", "inplace", "joining_and_splitting", "manipulation", "view_copies", "gather_scatter",
        "rows", "views",
    ),
    "making": ("creation", "creation_ranges", "random", "random_fill", "gamma_sampling", "window_functions"),
}  # fmt: skip

TENSORS = {
    "tensor": "Tensor", "optional": "Tensor | None", "number": "Tensor | Number", "list": "Sequence[Tensor]",
}  # fmt: skip
VARARGS = {
    "size": "Ints", "shape": "Ints", "dims": "Ints", "repeats": "Ints", "tensors": "Tensor | Sequence[Tensor]",
    "matrices": "Tensor", "operands": "Tensor",
}  # fmt: skip

_INT = """
    bins blank C embed_dim num_head num_heads chunks col decimals diagonal dim0 dim1 dim2 dimension dim
    downscale_factor edge_order end_dim
    fill_dim group groups growth_interval high HxW ignore_index ind index k length low m minlength n N n_fft niter
    block_size in_features out_features innerKTiles qGroupSize
    num_classes num_groups num_layers num_samples offset padding_idx physical_layout pow q r row size_dim start_dim
    steps storage_offset upscale_factor axis window_length hop_length win_length
""".split()
_INTS = """
    destination dilation kernel_size normalized_shape output_padding output_size padding pad physical_layout s shape
    shifts size sizes source split_size split_size_or_sections split_sizes stride
""".split()
_FLOAT = """
    atol rtol eps p beta momentum dropout_p label_smoothing margin delta lambd negative_slope norm_type maxnorm max_norm
    median sigma std mean tau lower upper_ scale_growth_factor scale_backoff_factor tol base d
""".split()
_BOOL = """
    accumulate align_corners batch_first bidirectional has_biases train training transposed use_input_stats size_average
    align_to_window onesided return_complex recompute_scale_factor
""".split()
# What a plain parameter of this name takes; "| None" is added where None is its default.
PLAIN = {
    **dict.fromkeys(_INT, "_b.int"),
    **dict.fromkeys(_INTS, "Ints"),
    **dict.fromkeys(_FLOAT, "_b.float"),
    **dict.fromkeys(_BOOL, "_b.bool"),
    "alpha": "Number",
    "approximate": "_b.str",
    "callable": "Callable[..., Any]",
    "correction": "_b.float",
    "device": "DeviceLike",
    "dims": "Ints",
    "distance_function": "Callable[[Tensor, Tensor], Tensor]",
    "divisor_override": "_b.int",
    "driver": "_b.str",
    "dtype": "DType",
    "end": "Number | Tensor",
    "equation": "_b.str",
    "fill_value": "Number | Tensor",
    "generator": "Generator",
    "hx": "Tensor | Sequence[Tensor]",
    "indexing": "_b.str",
    "indices": "Sequence[Tensor | None] | Tensor",
    "indices_or_sections": "Ints | Tensor",
    "interpolation_mode": "_b.int",
    "layout": "Layout",
    "lengths": "Tensor",
    "memory_format": "MemoryFormat",
    "mode": "_b.str",
    "norm": "_b.str",
    "offsets": "Tensor",
    "ord": "Number | _b.str",
    "other": "Tensor | Number",
    "out": "Tensor",
    "output_ratio": "_b.float | Sequence[_b.float]",
    "padding_mode": "_b.str",
    "params": "Sequence[Tensor]",
    "pin_memory": "_b.bool",
    "rcond": "_b.float | Tensor",
    "reduction": "_b.str",
    "repeats": "Ints | Tensor",
    "requires_grad": "_b.bool",
    "rounding_mode": "_b.str",
    "scale": "_b.float",
    "scale_factor": "_b.float | Sequence[_b.float]",
    "side": "_b.str",
    "src": "Tensor | Number",
    "start": "Number | Tensor",
    "tensors": "Sequence[Tensor]",
    "threshold": "_b.float",
    "unbiased": "_b.bool",
    "UPLO": "_b.str",
    "weight": "Tensor",
    "window_length": "_b.int",
    "x": "Tensor",
    "initial": "Number",
    "options": "Any",
    "data": "TensorLike",
    "append": "Tensor",
    "prepend": "Tensor",
    "range": "Sequence[_b.float]",
    "quant_min": "_b.int",
    "numel": "_b.int",
    "n_bins": "_b.int",
    "ratio": "_b.float",
    "bit_width": "_b.int",
    "quant_max": "_b.int",
    "averaging_const": "_b.float",
    "ch_axis": "_b.int",
    "spacing": "Number | Sequence[Number] | Tensor | Sequence[Tensor]",
    "dx": "_b.float",
    "nan": "_b.float",
    "posinf": "_b.float",
    "neginf": "_b.float",
}
# The same for one parameter of one op (its name in its namespace).
OF_OP = {
    ("norm", "p"): "_b.float | _b.str | None",
    **{
        (name, "mode"): "_b.int"
        for name in ("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only", "hash_tensor")
    },
    ("_native_multi_head_attention", "mask_type"): "_b.int | None",
    ("bernoulli", "p"): "_b.float | None",
    ("bernoulli_", "p"): "_b.float | Tensor",
    ("conv1d", "padding"): "Ints | _b.str",
    ("conv2d", "padding"): "Ints | _b.str",
    ("conv3d", "padding"): "Ints | _b.str",
    ("cross", "dim"): "_b.int | None",
    ("ctc_loss", "input_lengths"): "Tensor | Ints",
    ("ctc_loss", "target_lengths"): "Tensor | Ints",
    ("ctc_loss", "reduction"): "_b.int | _b.str",
    ("exponential_", "lambd"): "_b.float",
    ("fill_", "value"): "Tensor | Number",
    ("hardtanh", "min_val"): "_b.float",
    ("histogramdd", "bins"): "Tensor | Ints | Sequence[Tensor]",
    ("histogram", "bins"): "Tensor | _b.int",
    ("index_put", "indices"): "Sequence[Tensor | None]",
    ("index_put_", "indices"): "Sequence[Tensor | None]",
    ("local_response_norm", "k"): "_b.float",
    ("lp_pool1d", "norm_type"): "_b.float",
    ("cond", "p"): "Number | _b.str | None",
    ("matrix_norm", "dim"): "Sequence[_b.int]",
    ("matrix_rank", "atol"): "_b.float | Tensor | None",
    ("matrix_rank", "rtol"): "_b.float | Tensor | None",
    ("matrix_rank", "tol"): "_b.float | Tensor | None",
    ("pinv", "atol"): "_b.float | Tensor | None",
    ("pinv", "rtol"): "_b.float | Tensor | None",
    ("movedim", "source"): "Ints",
    ("normal", "size"): "Ints | None",
    ("pad", "value"): "_b.float | None",
    ("polygamma", "n"): "_b.int",
    ("quantile", "q"): "_b.float | Tensor",
    ("nanquantile", "q"): "_b.float | Tensor",
    ("random_", "from_"): "_b.int | None",
    ("random_", "to"): "_b.int | None",
    ("copy_", "src"): "Tensor | Number",
    ("set_", "source"): "Tensor | UntypedStorage | TypedStorage | None",
    ("bucketize", "right"): "_b.bool",
    ("softmax", "dim"): "_b.int",
    ("log_softmax", "dim"): "_b.int",
    ("tensordot", "dims"): "_b.int | Sequence[Sequence[_b.int]] | Tensor",
    ("unflatten", "sizes"): "Sequence[_b.int]",
    ("view", "size"): "Ints | DType",
    ("masked_fill", "value"): "Tensor | Number",
    ("fill_diagonal_", "fill_value"): "Number",
    ("full", "fill_value"): "Number | Tensor",
    ("full", "size"): "Ints",
    ("tensor_split", "indices"): "Sequence[_b.int] | None",
    ("fftfreq", "n"): "_b.int",
    ("scatter", "value"): "Number | None",
}
# Ops that take several dimensions at once.
SEVERAL_DIMS = set(
    """
    all any amax amin count_nonzero frobenius_norm logsumexp mean nanmean nansum norm nuclear_norm squeeze squeeze_copy
    std std_mean sum var var_mean vector_norm squeeze_ fftn ifftn fft2 ifft2 rfftn rfft2 irfftn irfft2 hfftn hfft2
    ihfftn ihfft2 fftshift ifftshift normalize unflatten_ flip tensordot
    """.split()
)

PAIR, TRIPLE, ANY_NUMBER = "tuple[Tensor, Tensor]", "tuple[Tensor, Tensor, Tensor]", "tuple[Tensor, ...]"
# Results that are not one tensor (and not the named tuple of the record's outputs).
RESULTS = {
    **dict.fromkeys("allclose equal is_same_size is_nonzero is_set_to".split(), "_b.bool"),
    **dict.fromkeys(
        """
        broadcast_tensors chunk dsplit hsplit vsplit split split_with_sizes tensor_split unbind unbind_copy unsafe_chunk
        unsafe_split unsafe_split_with_sizes split_with_sizes_copy split_copy meshgrid gradient lu native_dropout
        """.split(),
        ANY_NUMBER,
    ),
    **dict.fromkeys(
        "lstm_cell gru rnn_tanh rnn_relu native_dropout std_mean var_mean max_pool1d_with_indices"
        " max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d_with_indices"
        " adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices fractional_max_pool2d_with_indices"
        " fractional_max_pool3d_with_indices adaptive_max_pool1d_pair".split(),
        PAIR,
    ),
    **dict.fromkeys(
        "lstm native_batch_norm native_group_norm native_layer_norm svd_lowrank pca_lowrank".split(), TRIPLE
    ),
    "_amp_foreach_non_finite_check_and_unscale_": "None",
    "_choose_qparams_per_tensor": "tuple[_b.float, _b.int]",
    "choose_qparams_optimized": PAIR,
    **dict.fromkeys(
        ("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"), "tuple[Tensor, Tensor, Tensor, Tensor]"
    ),
    "_native_multi_head_attention": "tuple[Tensor, Tensor | None]",
    "_transform_bias_rescale_qkv": "tuple[Tensor, Tensor, Tensor]",
}
RESULTS_OF = {("linalg", "lu"): "linalg_lu"}
# Fields of named results that are not tensors.
FIELDS = {("histogramdd", "bin_edges"): "tuple[Tensor, ...]"}

_DIM = "dim: _b.int, keepdim: _b.bool = False"
_EXTREME = ["", f"{_DIM}, *, out: tuple[Tensor, Tensor] | None = None", "other: Tensor, *, out: Tensor | None = None"]
_UNIQUE = "return_inverse: {0}, return_counts: {1}, dim: _b.int | None = None"
_NO, _YES = "Literal[False] = False", "Literal[True]"
# Ops whose result depends on the arguments: [(parameters after the tensor, result)].
OVERLOADS = {
    **{
        name: [(_EXTREME[0], "Tensor"), (_EXTREME[1], f"results.{name}"), (_EXTREME[2], "Tensor")]
        for name in ("max", "min")
    },
    **{name: [("", "Tensor"), (_EXTREME[1], f"results.{name}")] for name in ("median", "nanmedian")},
    "nonzero": [(f"*, as_tuple: {_NO}", "Tensor"), (f"*, as_tuple: {_YES}", ANY_NUMBER)],
    "unique": [
        (f"sorted: _b.bool = True, {_UNIQUE.format(_NO, _NO)}", "Tensor"),
        (f"sorted: _b.bool = True, *, {_UNIQUE.format(_YES, _NO)}", PAIR),
        (f"sorted: _b.bool = True, *, {_UNIQUE.format(_NO, _YES)}", PAIR),
        (f"sorted: _b.bool = True, *, {_UNIQUE.format(_YES, _YES)}", TRIPLE),
    ],
    "unique_consecutive": [
        (_UNIQUE.format(_NO, _NO), "Tensor"),
        (f"*, {_UNIQUE.format(_YES, _NO)}", PAIR),
        (f"*, {_UNIQUE.format(_NO, _YES)}", PAIR),
        (f"*, {_UNIQUE.format(_YES, _YES)}", TRIPLE),
    ],
}
# The same for functions alone: [(all parameters, result)], and for methods alone.
FUNCTION_OVERLOADS = {
    "where": [
        ("condition: Tensor", ANY_NUMBER),
        ("condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None", "Tensor"),
    ],
    **{
        name: [
            ("tensor: Tensor, /", "Tensor"),
            ("tensors: Sequence[Tensor], /", ANY_NUMBER),
            ("first: Tensor, second: Tensor, /, *tensors: Tensor", ANY_NUMBER),
        ]
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
    },
    "arange": [
        (f"{bounds}, *, {{options}}", "Tensor")
        for bounds in (
            "end: Number | Tensor",
            "start: Number | Tensor, end: Number | Tensor, step: Number | Tensor = 1",
        )
    ],
    "randint": [
        (f"{bounds}, size: Ints, *, generator: Generator | None = None, {{options}}", "Tensor")
        for bounds in ("high: _b.int", "low: _b.int, high: _b.int")
    ],
    "einsum": [("equation: _b.str, *operands: Tensor | Sequence[Tensor]", "Tensor")],
    "result_type": [("tensor1: Tensor | Number, tensor2: Tensor | Number", "DType")],
    "repeat_interleave": [
        ("repeats: Tensor, *, output_size: _b.int | None = None", "Tensor"),
        (
            "input: Tensor, repeats: Tensor | _b.int, dim: _b.int | None = None, *, output_size: _b.int | None = None",
            "Tensor",
        ),
    ],
    "full": [("size: Sequence[_b.int], fill_value: Number | Tensor, *, {options}", "Tensor")],
}
OPTIONS = (
    "out: Tensor | None = None, dtype: DType | None = None, layout: Layout | None = None, device: DeviceLike = None, "
    "pin_memory: _b.bool = False, requires_grad: _b.bool = False"
)
METHOD_OVERLOADS = {
    "where": [("condition: Tensor, other: Tensor | Number", "Tensor")],
    "norm": [
        (
            'p: _b.float | _b.str | None = "fro", dim: Ints | None = None, keepdim: _b.bool = False, '
            "dtype: DType | None = None",
            "Tensor",
        )
    ],
    "repeat_interleave": [
        ("repeats: Tensor | _b.int, dim: _b.int | None = None, *, output_size: _b.int | None = None", "Tensor")
    ],
    "view": [("dtype: DType, /", "Tensor"), ("*size: Ints", "Tensor")],
}
