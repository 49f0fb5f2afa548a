"""torchvision: models with random weights, transforms v1 and v2, utilities."""

import torch
import torchvision
from show import gradients, show
from torchvision import transforms as v1
from torchvision.transforms import v2

for name in ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "vgg11", "squeezenet1_1", "shufflenet_v2_x0_5",
             "vit_b_32", "swin_t", "convnext_tiny", "densenet121", "regnet_y_400mf", "googlenet"):  # fmt: skip
    torch.manual_seed(0)
    kwargs = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    size = 224 if name == "vit_b_32" else 64
    model = torchvision.models.get_model(name, num_classes=10, **kwargs).eval()
    torch.manual_seed(1)
    x = torch.randn(2, 3, size, size)
    with torch.no_grad():
        show(f"models.{name}", model(x))
torch.manual_seed(0)
model = torchvision.models.resnet18(num_classes=10)
loss = torch.nn.functional.cross_entropy(model(x[:, :, :64, :64]), torch.tensor([1, 2]))
loss.backward()
show("resnet18.loss", loss)
show("resnet18.gradients", gradients(model))
show("segmentation", torchvision.models.segmentation.lraspp_mobilenet_v3_large(
    weights=None, weights_backbone=None, num_classes=3).eval()(x)["out"].shape)  # fmt: skip

torch.manual_seed(3)
image = torch.randint(0, 256, (3, 24, 32), dtype=torch.uint8)
for package, label in ((v1, "v1"), (v2, "v2")):
    for transform in (
        package.Resize((12, 16), antialias=True), package.CenterCrop(10), package.Grayscale(3), package.Pad(2),
        package.RandomHorizontalFlip(1.0), package.ColorJitter(0.2, 0.2, 0.2, 0.1), package.RandomRotation(30),
        package.RandomAffine(20, (0.1, 0.1)), package.GaussianBlur(3), package.RandomResizedCrop(8, antialias=True),
        package.RandomPerspective(p=1.0), package.RandomErasing(1.0), package.AutoAugment(),
        package.RandAugment(), package.TrivialAugmentWide(), package.RandomInvert(1.0), package.RandomPosterize(4, 1.0),
        package.RandomSolarize(100, 1.0), package.RandomAdjustSharpness(2, 1.0), package.RandomEqualize(1.0),
        package.ElasticTransform(10.0),
    ):  # fmt: skip
        torch.manual_seed(4)
        show(f"{label}.{type(transform).__name__}", transform(image))
scaled = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.2] * 3)])
show("v2.normalised", scaled(image))
from torchvision import tv_tensors  # noqa: E402

boxes = tv_tensors.BoundingBoxes([[2.0, 3, 10, 12]], format="XYXY", canvas_size=(24, 32))
flipped = v2.RandomHorizontalFlip(1.0)(tv_tensors.Image(image), boxes)
show("v2.boxes", flipped[1])
show("ops.iou", torchvision.ops.box_iou(boxes.as_subclass(torch.Tensor), torch.tensor([[3.0, 3, 9, 14]])))
show("ops.giou", torchvision.ops.generalized_box_iou_loss(torch.rand(3, 4).cumsum(1), torch.rand(3, 4).cumsum(1)))
show("ops.focal", torchvision.ops.sigmoid_focal_loss(torch.randn(4), torch.ones(4)))
show("grid", torchvision.utils.make_grid(torch.rand(4, 3, 5, 5), nrow=2))
