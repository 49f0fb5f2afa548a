"""A few eigenpairs of a large symmetric matrix: the locally optimal block preconditioned conjugate gradient method
(Knyazev, 2001), with the basis selected by orthogonalisation (Stathopoulos and Wu, 2002; Duersch and others, 2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor

from ._sparse.matrix_products import bform, matmul, qform, symeig

__all__ = ["LOBPCG", "lobpcg"]

_EPSILON = {torch.float32: 1.2e-07, torch.float64: 2.23e-16}


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[LOBPCG], None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (with `largest=False` smallest) eigenvalues (*, k) and eigenvectors (*, m, k) of a symmetric
    positive definite `A` (*, m, m), dense or sparse, or of the generalised problem A x = e B x.

    `X` (*, m, n) is where to start, else `n` random vectors; `iK` is a preconditioner. It ends after `niter` steps
    (1000; -1: never), or where the relative residuals are below `tol`. `method` is "ortho" or "basic"; `tracker` is
    called with the LOBPCG object at every step. Gradients are those of the dense, real problem with no `B`.
    ValueError where m is less than three times the number of pairs.

    >>> A = torchlite.diag(torchlite.arange(1.0, 10.0))
    >>> torchlite.lobpcg(A, k=2)[0].round()
    tensor([9., 8.])
    """
    found = (k, B, X, n, iK, niter, tol, largest, method, tracker, ortho_iparams, ortho_fparams, ortho_bparams)
    if not torch.is_grad_enabled() or not (A.requires_grad or B is not None and B.requires_grad):
        return _lobpcg_batch(A, *found)
    sparse, complex_ = A.is_sparse or B is not None and B.is_sparse, A.is_complex()
    if not sparse:
        A = (A + A.mT) / 2
        B = None if B is None else (B + B.mT) / 2
    return LOBPCGAutogradFunction.apply(A, sparse, complex_, k, B, *found[2:])


class LOBPCGAutogradFunction(torch.autograd.Function):
    """The pairs, whose gradient needs no iteration: that of `eigh`, where the other eigenvectors enter alike."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, sparse: bool, complex_: bool, k: Any, B: Tensor | None, *more: Any) -> Any:
        values, vectors = _lobpcg_batch(A, k, B, *more)
        ctx.save_for_backward(A, values, vectors)
        ctx.of_b = B is not None
        for refused, what in ((sparse, "sparse"), (complex_, "complex")):
            if refused:
                ctx.of_b = None
                ctx.words = f"lobpcg.backward does not support {what} input yet. Note that lobpcg.forward does though."
        if ctx.of_b:
            ctx.words = "lobpcg.backward does not support backward with B != I yet."
        return values, vectors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if ctx.of_b is not False:
            raise ValueError(ctx.words)
        A, values, vectors = ctx.saved_tensors
        g_values, g_vectors = grads
        k = values.shape[-1]
        seen = vectors.mT @ g_vectors
        gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
        own = torch.eye(k, dtype=torch.bool, device=A.device)
        inner = torch.where(own, torch.zeros_like(seen), seen / torch.where(own, torch.ones_like(gaps), gaps))
        # Beside the pairs: for each value e, (e - A) y = g within the complement, by a matrix that is 1 on the pairs.
        within = vectors @ vectors.mT
        other = A - (vectors * values.unsqueeze(-2)) @ vectors.mT
        each = values.unsqueeze(-1).unsqueeze(-1)
        matrices = each * (torch.eye(A.shape[-1], dtype=A.dtype, device=A.device) - within).unsqueeze(-3)
        matrices = matrices - (other - within).unsqueeze(-3)
        outer = torch.linalg.solve(matrices, (g_vectors - within @ g_vectors).mT).mT
        return (vectors @ (torch.diag_embed(g_values) + inner) + outer) @ vectors.mT, *[None] * 15


def _lobpcg_batch(
    A: Tensor,
    k: int | None,
    B: Tensor | None,
    X: Tensor | None,
    n: int | None,
    iK: Tensor | None,
    niter: int | None,
    tol: float | None,
    largest: bool | None,
    method: str | None,
    tracker: Any,
    ortho_iparams: dict[str, int] | None,
    ortho_fparams: dict[str, float] | None,
    ortho_bparams: dict[str, bool] | None,
) -> tuple[Tensor, Tensor]:
    """The pairs of every matrix of a batch, one after the other."""
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got A.shape={A.shape}, B.shape={B.shape}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    method = "ortho" if method is None else method
    dtype = A.dtype if A.is_floating_point() or A.is_complex() else torch.get_default_dtype()
    iparams = {"m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter}
    fparams = {"tol": math.sqrt(_EPSILON[dtype]) if tol is None else tol}
    bparams = {"largest": True if largest is None else largest}
    if method == "ortho":
        iparams |= {"ortho_i_max": 3, "ortho_j_max": 3, **(ortho_iparams or {})}
        fparams |= {f"ortho_{name}": fparams["tol"] for name in ("tol", "tol_drop", "tol_replace")}
        fparams |= ortho_fparams or {}
        bparams |= {"ortho_use_drop": False, **(ortho_bparams or {})}
    batch = tuple(A.shape[:-2])
    if X is None:
        X = torch.randn((*batch, m, n), dtype=dtype, device=A.device)
    elif tuple(X.shape[-2:]) != (m, n):
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(m, n)}")
    if not batch:
        return LOBPCG(A, B, X, iK, iparams, fparams, bparams, method, tracker).run()
    flat: list[Any] = [None if a is None else a.reshape(-1, *a.shape[-2:]) for a in (A, B, X)]
    pairs = []
    if not math.prod(batch):
        return A.new_empty((*batch, k)), A.new_empty((*batch, m, k))
    for i in range(math.prod(batch)):
        parts: list[Any] = [None if part is None else part[i] for part in flat]
        pairs.append(LOBPCG(parts[0], parts[1], parts[2], iK, iparams, fparams, bparams, method, tracker).run())
    values, vectors = (torch.stack(parts) for parts in zip(*pairs, strict=True))
    return values.reshape(*batch, k), vectors.reshape(*batch, m, k)


class LOBPCG:
    """The state of the iteration: `A`, `B`, `iK`; the pairs `E` (n), `X` (m, n), the basis `S` that they were chosen
    from, the residuals `R`; parameters (`iparams`, `fparams`, `bparams`) and variables (`ivars`, `fvars`, `bvars`,
    `tvars`). A tracker ends it by `bvars["force_stop"] = True`.
    """

    def __init__(
        self,
        A: Tensor,
        B: Tensor | None,
        X: Tensor,
        iK: Tensor | None,
        iparams: dict[str, int],
        fparams: dict[str, float],
        bparams: dict[str, bool],
        method: str,
        tracker: Callable[[LOBPCG], None] | None,
    ) -> None:
        self.A, self.B, self.iK = A, B, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        m, n = iparams["m"], iparams["n"]
        self.X = X
        self.E = X.new_zeros((n,))
        self.R = X.new_zeros((m, n))
        self.S = X.new_zeros((m, 0))
        self.ivars = {"istep": 0, "iterations_left": iparams["niter"], "converged_count": 0, "converged_end": 0}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, Tensor] = {}
        self._others = X.new_zeros((m, 0))  # what the next basis has beside X: the last step's directions

    def __str__(self) -> str:
        named = ("ivars", "fvars", "bvars", "tvars", "E", "X")
        return "\n".join(["LOBPCG:", *(f"  {name}={getattr(self, name)}" for name in named)])

    def run(self) -> tuple[Tensor, Tensor]:
        """Iterate to the end: the k values and vectors."""
        with torch.no_grad():
            size = float(torch.linalg.vector_norm(self.X))
            for name, matrix in (("A_norm", self.A), ("B_norm", self.B)):
                self.fvars[name] = float(torch.linalg.vector_norm(matmul(matrix, self.X))) / size
            self.fvars["X_norm"] = size
            self._rayleigh_ritz([self._orthonormal_basis(self.X, None)])
            while not self.stop_iteration():
                self.update()
                if self.tracker is not None:
                    self.tracker(self)
        k = self.iparams["k"]
        return self.E[:k], self.X[:, :k]

    def stop_iteration(self) -> bool:
        """True if all pairs converged, no iterations are left, or the tracker requests the end."""
        return (
            self.bvars.get("force_stop", False)
            or self.ivars["iterations_left"] == 0
            or self.ivars["converged_count"] >= self.iparams["k"]
        )

    def update(self) -> None:
        """One step: the best pairs within the span of X, the last directions and the residuals."""
        self.ivars["istep"] += 1
        self.ivars["iterations_left"] -= 1
        steepest = matmul(self.iK, self.R[:, self.ivars["converged_count"] :])
        known = torch.cat([self.X, self._others], -1)
        if self.method == "ortho":
            steepest = self._orthonormal_basis(steepest, known)
        else:
            steepest = steepest / torch.linalg.vector_norm(steepest, dim=0)
        self._rayleigh_ritz([known, steepest])

    def _rayleigh_ritz(self, parts: list[Tensor]) -> None:
        """Rayleigh and Ritz: the pairs within what the parts' columns span."""
        n, largest = self.iparams["n"], self.bparams["largest"]
        self.S = S = torch.cat(parts, -1)
        self.ivars["converged_end"] = S.shape[-1]
        inner = qform(self.A, S)
        if self.method == "ortho":
            self.E, mixed = (part[..., :n] for part in symeig(inner, largest))
        else:
            factor = torch.linalg.cholesky(qform(self.B, S))
            half = torch.linalg.solve_triangular(factor, inner, upper=False)
            whole = torch.linalg.solve_triangular(factor, half.mT, upper=False)
            self.E, mixed = (part[..., :n] for part in symeig(whole, largest))
            mixed = torch.linalg.solve_triangular(factor.mT, mixed, upper=True)
        self.X = S @ mixed
        self.update_residual()
        moving = mixed[:, self.update_converged_count() :]
        directions = S[:, n:] @ moving[n:]
        if self.method == "ortho":
            self._others = self._orthonormal_basis(directions, self.X)
        else:
            self._others = directions / torch.linalg.vector_norm(directions, dim=0) if S.shape[-1] > n else S[:, n:]

    def update_residual(self) -> None:
        """R = A X - B X diag(E)."""
        self.R = matmul(self.A, self.X) - matmul(self.B, self.X) * self.E

    def update_converged_count(self) -> int:
        """How many pairs, counted from the first, have a relative residual below the tolerance."""
        sizes = self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"]
        self.tvars["rerr"] = torch.linalg.vector_norm(self.R, dim=0) / (torch.linalg.vector_norm(self.X, dim=0) * sizes)
        below = (self.tvars["rerr"] <= self.fparams["tol"]).to(torch.int64)
        self.ivars["converged_count"] = int(below.cumprod(0).sum())
        return self.ivars["converged_count"]

    def _orthonormal_basis(self, U: Tensor, V: Tensor | None) -> Tensor:
        """A basis, orthonormal by B, of what U's columns span beside V's; columns that add nothing are left out."""
        if self.method != "ortho":
            return U
        least = _EPSILON[U.dtype] * max(U.shape[-1], 1)
        if self.bparams["ortho_use_drop"]:
            least = max(least, self.fparams["ortho_tol_drop"] ** 2)
        for _ in range(self.iparams["ortho_i_max"]):
            if U.shape[-1] == 0:
                break
            if V is not None:
                U = U - V @ bform(V, self.B, U)
            gram = qform(self.B, U)
            scale = torch.diagonal(gram).clamp(min=0).sqrt()
            kept = scale > 0
            U, gram, scale = U[:, kept], gram[kept][:, kept], scale[kept]
            if U.shape[-1] == 0:
                break
            values, turned = torch.linalg.eigh(gram / scale / scale.unsqueeze(-1))
            kept = values > least * values[-1]
            U = (U / scale) @ (turned[:, kept] / values[kept].sqrt())
        return U
