"""Discrete Fourier transforms."""

from tests.ops.op_db import A, S, row


def C(*shape):
    return A(shape, dtype="complex128")


row(
    "fft_fft",
    S((4,)),
    S(C(3, 5)),
    S(C(3, 5), 7, 0, "ortho"),
    S((3, 5), 4, -1, "forward"),
    S(A((4,), dtype="int64", low=0, high=9)),
    covers=("_fft_c2c_core", "_fft_r2c_core", "_pad_with_zeros"),
)
row("fft_ifft", S((4,)), S(C(3, 5)), S(C(3, 5), 7, 0, "ortho"), S((3, 5), 4, -1, "forward"))
row("fft_rfft", S((4,)), S((3, 5)), S((3, 5), 8, 0, "ortho"), S((3, 5), 2, -1, "forward"))
row(
    "fft_irfft",
    S(C(4)),
    S(C(3, 5)),
    S(C(3, 5), 7, 1, "ortho"),
    S(C(3, 5), 1, 0),
    S(C(3, 4), 5, 0, "forward"),
    covers=("_fft_c2r_core",),
)
row("fft_hfft", S(C(4)), S(C(3, 5), 7, 0, "ortho"), S(C(3, 5), 8, 1))
row("fft_ihfft", S((4,)), S((3, 5), 7, 0, "ortho"), S((3, 5), 4))
row(
    "fft_fftn",
    S((3, 4)),
    S(C(2, 3, 4), (4, -1)),
    S(C(2, 3, 4), None, (0, 2), "ortho"),
    S((2, 3), (3, 2), (1, 0), "forward"),
)
row("fft_ifftn", S((3, 4)), S(C(2, 3, 4), (4, 2)), S(C(2, 3, 4), None, (0, 2), "ortho"))
row("fft_rfftn", S((3, 4)), S((2, 3, 4), (4, 3)), S((2, 3, 4), None, (2, 0), "ortho"))
row(
    "fft_irfftn",
    S(C(3, 4)),
    S(C(2, 3, 4), (4, 5)),
    S(C(2, 3, 4), None, (2, 0), "ortho"),
    S(C(2, 3), (2, -1), (0, 1), "forward"),
)
row("fft_hfftn", S(C(3, 4)), S(C(2, 3, 4), (4, 5), (0, 2), "ortho"))
row("fft_ihfftn", S((3, 4)), S((2, 3, 4), (4, 5), (0, 2), "ortho"))
for _name in ("fft", "ifft"):
    row(f"fft_{_name}2", S(C(3, 4)), S((2, 3, 4), (2, 5), (0, 1), "ortho"))
row("fft_rfft2", S((3, 4)), S((2, 3, 4), (2, 5), (0, 1), "ortho"))
row("fft_irfft2", S(C(3, 4)), S(C(2, 3, 4), (2, 5), (0, 1), "ortho"))
row("fft_hfft2", S(C(3, 4)), S(C(2, 3, 4), (2, 5), (0, 1), "ortho"))
row("fft_ihfft2", S((3, 4)), S((2, 3, 4), (2, 5), (0, 1), "ortho"))
row("fft_fftfreq", S(5), S(4, 0.5), S(1), grad=False, meta=False)
row("fft_rfftfreq", S(5), S(4, 0.5), S(1), grad=False, meta=False)
row("fft_fftshift", S((5,)), S((3, 4), 1), S((3, 4), (0, 1)))
row("fft_ifftshift", S((5,)), S((3, 4), 1), S((3, 4), (0, 1)))

_WINDOW = A((4,), low=0.5, high=1)
row(
    "stft",
    S((10,), 4, window=_WINDOW, return_complex=True),
    S((2, 10), 4, 2, 3, A((3,), low=0.5, high=1), False, "reflect", True, False, True),
    S(C(10), 4, window=_WINDOW),
    S((2, 10), 4, 1, None, _WINDOW, True, "constant", return_complex=True),
    S((12,), 4, window=_WINDOW, return_complex=False),
)
row(
    "istft",
    S(C(3, 6), 4, window=_WINDOW),
    S(C(2, 3, 6), 4, 2, 4, _WINDOW, True, True, length=9),
    S(C(4, 6), 4, window=_WINDOW, onesided=False, return_complex=True),
)
