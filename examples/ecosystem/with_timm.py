"""timm: models with random weights, an optimizer, a schedule, an augmentation, averaged weights."""

import timm
import timm.loss
import timm.optim
import timm.scheduler
import torch
from show import gradients, show
from timm.data import Mixup
from timm.utils import ModelEmaV3

for name, size in (
    ("resnet10t", 64), ("mobilenetv3_small_050", 64), ("efficientnet_lite0", 64), ("convnext_atto", 64),
    ("vit_tiny_patch16_224", 224), ("deit_tiny_patch16_224", 224), ("mixer_s32_224", 224), ("regnetx_002", 64),
    ("ghostnet_050", 64), ("edgenext_xx_small", 64), ("poolformer_s12", 64), ("fastvit_t8", 64),
):  # fmt: skip
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=7).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        show(name, model(torch.randn(1, 3, size, size)))
torch.manual_seed(0)
features = timm.create_model("resnet10t", features_only=True).eval()
x, y = torch.randn(4, 3, 64, 64), torch.tensor([0, 1, 2, 3])
show("features", [f.detach().norm() for f in features(x)])
for kind in ("adamw", "lamb", "lookahead_radam", "nadamw", "lion", "adopt", "madgrad", "adafactor"):
    torch.manual_seed(0)
    model = timm.create_model("resnet10t", num_classes=7)
    average = ModelEmaV3(model, decay=0.9)
    optimizer = timm.optim.create_optimizer_v2(model, opt=kind, lr=1e-3, weight_decay=0.01)
    schedule = timm.scheduler.CosineLRScheduler(optimizer, t_initial=5, warmup_t=2, warmup_lr_init=1e-5)
    for step in range(2):
        optimizer.zero_grad()
        loss = timm.loss.LabelSmoothingCrossEntropy()(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step(step + 1)
        average.update(model)
    show(f"{kind}.loss", loss)
    show(f"{kind}.gradients", gradients(model))
    show(f"{kind}.average", average.module.fc.weight)
    show(f"{kind}.lr", optimizer.param_groups[0]["lr"])
import numpy  # noqa: E402

numpy.random.seed(0)  # noqa: NPY002  timm draws by it
mixed, target = Mixup(mixup_alpha=0.4, cutmix_alpha=1.0, num_classes=7)(x, y)
show("mixup", mixed)
show("mixup.target", target)
