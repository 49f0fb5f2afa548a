"""kornia: colours, filters, geometry, augmentation, losses, features."""

import kornia as K
import torch
from show import show

torch.manual_seed(0)
x = torch.rand(2, 3, 24, 32)
for name in ("rgb_to_grayscale", "rgb_to_hsv", "rgb_to_lab", "rgb_to_ycbcr", "rgb_to_hls", "rgb_to_xyz", "sepia"):
    show(f"color.{name}", getattr(K.color, name)(x))
show("filters.gaussian", K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)))
show("filters.sobel", K.filters.sobel(x))
show("filters.median", K.filters.median_blur(x, (3, 3)))
show("filters.bilateral", K.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)))
show("filters.canny", K.filters.canny(x)[0])
show("morphology.dilation", K.morphology.dilation(x, torch.ones(3, 3)))
turned = K.geometry.rotate(x, torch.tensor([30.0, -10.0]))
show("geometry.rotate", turned)
show("geometry.resize", K.geometry.resize(x, (12, 16)))
show("geometry.warp", K.geometry.warp_perspective(x, torch.eye(3).repeat(2, 1, 1) + 0.01, (24, 32)))
points = torch.tensor([[[0.0, 0], [10, 0], [10, 10], [0, 10]]])
show("geometry.homography", K.geometry.get_perspective_transform(points, points * 1.5 + 1))
show("geometry.quaternion", K.geometry.axis_angle_to_rotation_matrix(torch.tensor([[0.1, 0.2, 0.3]])))
show("losses.ssim", K.losses.ssim_loss(x, turned, 5))
show("losses.dice", K.losses.dice_loss(torch.rand(2, 4, 5, 5), torch.randint(0, 4, (2, 5, 5))))
show("losses.focal", K.losses.focal_loss(torch.rand(2, 4, 5, 5), torch.randint(0, 4, (2, 5, 5)), 0.5, reduction="mean"))
show("feature.harris", K.feature.harris_response(x[:, :1]))
show("feature.hardnet", K.feature.SIFTDescriptor(32)(torch.rand(2, 1, 32, 32)))
show("enhance.equalize", K.enhance.equalize(x))
show("enhance.adjust", K.enhance.adjust_hue(x, 0.3))
torch.manual_seed(1)
augment = K.augmentation.AugmentationSequential(
    K.augmentation.RandomHorizontalFlip(p=1.0), K.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    K.augmentation.RandomAffine(20.0, p=1.0), K.augmentation.RandomErasing(p=1.0), data_keys=["input"],
)  # fmt: skip
show("augmentation", augment(x))
weight = x.clone().requires_grad_()
K.filters.gaussian_blur2d(K.color.rgb_to_hsv(weight), (3, 3), (1.0, 1.0)).pow(2).sum().backward()
show("gradient", weight.grad)
