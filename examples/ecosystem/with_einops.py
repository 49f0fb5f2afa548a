"""einops: rearranging, reducing, layers, gradients."""

import einops
import torch
from einops.layers.torch import EinMix, Rearrange, Reduce
from show import gradients, show

torch.manual_seed(0)
x = torch.randn(2, 8, 8, 3, requires_grad=True)
patches = einops.rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4)
show("patches", patches)
show("reduced", einops.reduce(x, "b h w c -> b c", "max"))
show("repeated", einops.repeat(x, "b h w c -> b (r h) w c", r=3).sum())
show("einsum", einops.einsum(x, x, "b h w c, b h w d -> b c d"))
packed, shapes = einops.pack([x, x[:, 0]], "b * c")
show("packed", packed)
show("unpacked", einops.unpack(packed, shapes, "b * c")[1])
model = torch.nn.Sequential(
    Rearrange("b h w c -> b c h w"),
    torch.nn.Conv2d(3, 4, 3),
    Reduce("b c (h k) (w l) -> b c h w", "mean", k=2, l=2),
    EinMix("b c h w -> b h w d", weight_shape="c d", bias_shape="d", c=4, d=5),
)
out = model(x)
show("out", out)
(out**2).sum().backward()
show("gradients", gradients(model))
show("x.grad", x.grad)
