"""torch.linalg: decompositions, solvers, norms."""

import torchlite as torch
from torchlite import linalg as LA

torch.manual_seed(0)
A = torch.randn(4, 4, dtype=torch.float64)
b = torch.randn(4, dtype=torch.float64)
S = A @ A.mT + torch.eye(4, dtype=torch.float64)

x = torch.linalg.solve(A, b)
assert torch.allclose(A @ x, b) and torch.allclose(torch.linalg.inv(A) @ b, x)
U, sigma, Vh = torch.linalg.svd(A, full_matrices=False)
assert torch.allclose(U @ torch.diag(sigma) @ Vh, A)
Q, R = torch.linalg.qr(A)
assert torch.allclose(Q @ R, A)
values, vectors = torch.linalg.eigh(S)
assert torch.allclose(vectors @ torch.diag(values) @ vectors.T, S)
L = torch.linalg.cholesky(S)
assert torch.allclose(torch.cholesky_solve(b[:, None], L)[:, 0], torch.linalg.solve(S, b))
result = torch.linalg.lstsq(A, b[:, None])
assert torch.allclose(result.solution[:, 0], x)
sign, logdet = torch.linalg.slogdet(S)
assert sign == 1 and torch.allclose(logdet, torch.log(torch.linalg.det(S)))
eigenvalues = LA.eigvals(A)
assert eigenvalues.is_complex() and torch.allclose(eigenvalues.sum().real, A.trace())
assert LA.norm(b) == LA.vector_norm(b, ord=2) and LA.matrix_norm(A, "nuc") > 0
assert int(LA.matrix_rank(A)) == 4 and LA.cond(A) > 1
assert torch.allclose(LA.multi_dot([A, S, A]), A @ S @ A) and torch.allclose(LA.matrix_power(A, 2), A @ A)
assert torch.allclose(LA.pinv(A), LA.inv(A)) and LA.cross(b[:3], b[1:]).shape == (3,)
try:
    torch.linalg.cholesky(-S)
except torch.linalg.LinAlgError as error:
    print("refused:", str(error)[:40])
print(values.tolist(), LA.matrix_exp(torch.zeros(2, 2)).tolist())
