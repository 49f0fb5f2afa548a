"""Wrong programs: every line that is marked must be refused by both checkers, for the reason that stands beside it.

Never run. An error that a checker no longer finds is an unused comment, which both report.
"""

# pyright: basic, reportUnnecessaryTypeIgnoreComment=true, reportUnusedExpression=false

from __future__ import annotations

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.utils.data import DataLoader, Dataset, TensorDataset

x = torch.ones(2, 3)

# Names that are not there.
x.reshap(3, 2)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
x.ad_(1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
x.shap  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
torch.zeroes(3)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
torch.float31  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
torch.linalg.svdd(x)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
torch.fft.fftt(x)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
nn.functional.rellu(x)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
nn.Liner(2, 3)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
torch.optim.Adan([x])  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
x.max(0).value  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
x.max().eigenvalues  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
torch.cuda.is_availabel()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]

# Something else where a tensor is wanted.
torch.exp("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
torch.matmul(x, 2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
torch.cat(x, "0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
nn.functional.relu("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
nn.functional.mse_loss(x, [1.0])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
torch.linalg.solve(x, None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
x + "1"  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
x @ [1]  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
x["row"]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
x[0] = "text"  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
x.copy_("y")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Arguments that are missing, too many, or of another kind.
torch.stack()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
torch.addmm(x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
x.softmax()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
nn.Linear(2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
nn.Linear(2, "3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
nn.Dropout(rate=0.1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
x.sum(axs=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
x.squeeze(dim="first")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
torch.ones(2, dtype="float32")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
torch.zeros(2, device=1.5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
torch.optim.SGD(x.shape, lr=0.1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
torch.optim.Adam([x], learning_rate=0.1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
torch.optim.lr_scheduler.StepLR("optimizer", 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
torch.manual_seed("0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
DataLoader(TensorDataset(x), batch_size="8")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
nn.Linear(2, 3)("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
nn.Linear(2, 3)(x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
nn.LSTM(2, 3)(x).shape  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
for batch in DataLoader(TensorDataset(x)):
    batch.shape  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
TensorDataset([1, 2])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Results that are taken for something else.
name: str = x.sum()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
count: str = x.shape[0]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
rows: list[int] = x.argmax(0)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
x.grad.zero_()  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
x.requires_grad = "yes"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
values: Tensor = x.topk(1)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


class Numbers(Dataset[int]):
    def __getitem__(self, index: int) -> int:
        return index


batches: DataLoader[str] = DataLoader(Numbers())  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType]


@torch.no_grad()
def double(value: Tensor) -> Tensor:
    return value * 2


double(2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
