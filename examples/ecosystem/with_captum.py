"""captum: what a network's answers come from, by gradients, by layers and by perturbation."""

import torch
from captum import attr
from captum.metrics import infidelity
from captum.robust import FGSM
from show import show
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu1, self.pool = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2)
        self.linear, self.relu2, self.out = nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.relu2(self.linear(self.pool(self.relu1(self.conv(x))).flatten(1))))


net, x = Net().eval(), torch.randn(2, 1, 8, 8)
base = torch.zeros_like(x)
found, delta = attr.IntegratedGradients(net).attribute(x, base, target=1, return_convergence_delta=True, n_steps=20)
show("integrated.gradients", found)
show("their.error", delta)
for name in ("Saliency", "InputXGradient", "DeepLift", "GuidedBackprop", "Deconvolution"):
    show(name, getattr(attr, name)(net).attribute(x, target=0))
show("GuidedGradCam", attr.GuidedGradCam(net, net.conv).attribute(x, target=0))
show("LayerGradCam", attr.LayerGradCam(net, net.conv).attribute(x, target=1))
show("LayerActivation", attr.LayerActivation(net, net.linear).attribute(x))
for name in ("LayerConductance", "LayerIntegratedGradients", "InternalInfluence"):
    show(name, getattr(attr, name)(net, net.linear).attribute(x, target=1, n_steps=8))
show("NeuronConductance", attr.NeuronConductance(net, net.linear).attribute(x, 2, target=1, n_steps=8))
show("NeuronGradient", attr.NeuronGradient(net, net.linear).attribute(x, 1))
show("FeatureAblation", attr.FeatureAblation(net).attribute(x, target=0, perturbations_per_eval=4))
show("Occlusion", attr.Occlusion(net).attribute(x, (1, 3, 3), target=0, strides=(1, 2, 2)))
model, rows = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(3, 5)
show("ShapleyValueSampling", attr.ShapleyValueSampling(model).attribute(rows, target=0, n_samples=5))
show("KernelShap", attr.KernelShap(model).attribute(rows[:1], target=0, n_samples=40))
show("LRP", attr.LRP(model).attribute(rows, target=0))
tunnel = attr.NoiseTunnel(attr.IntegratedGradients(model))
show("NoiseTunnel", tunnel.attribute(rows, nt_type="smoothgrad", nt_samples=4, stdevs=0.1, target=1))
saliency = attr.Saliency(model).attribute(rows, target=0)
show("infidelity", infidelity(model, lambda x: (0.1 * torch.ones_like(x), x - 0.1), rows, saliency, target=0))
show("FGSM", FGSM(model).perturb(rows, 0.1, target=torch.tensor([0, 1, 0])))
