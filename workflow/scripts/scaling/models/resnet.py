"""ResNet-18 for 32×32 images."""

from torch import Tensor, nn
from torch.nn import functional


class NarrowConv2d(nn.Conv2d):
    """A strided 1×1 convolution, computed by slicing the input and convolving without a stride.

    This avoids a bug of oneDNN (seen with PyTorch 2.15). On a CPU without AVX-512, a strided 1×1
    convolution of channels-last images with fewer than `NARROW` channels writes out of bounds.
    """

    NARROW = 8

    def forward(self, x: Tensor) -> Tensor:
        down, right = self.stride
        return functional.conv2d(x[:, :, ::down, ::right], self.weight, self.bias)


class BasicBlock(nn.Module):
    """Residual block of two 3×3 convolutions (He et al. 2016, arXiv:1512.03385, figure 2)."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels_out:
            convolution = NarrowConv2d if channels_in < NarrowConv2d.NARROW else nn.Conv2d
            self.shortcut = nn.Sequential(
                convolution(channels_in, channels_out, 1, stride, bias=False),
                nn.BatchNorm2d(channels_out),
            )

    def forward(self, x: Tensor) -> Tensor:
        out = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class ResNet18(nn.Module):
    """ResNet-18 for CIFAR: a 3×3 stem without pooling, four stages of two blocks, one linear layer.

    The input is [batch, 3, 32, 32], the output is logits [batch, classes]. `width` is the number of
    channels in the first stage. With width 64 and 10 classes, there are 11,173,962 parameters.
    """

    def __init__(self, width: int = 64, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.stages = nn.ModuleList()
        channels = width
        for stage in range(4):
            wider = width * 2**stage
            first = BasicBlock(channels, wider, stride=1 if stage == 0 else 2)
            self.stages.append(nn.Sequential(first, BasicBlock(wider, wider, stride=1)))
            channels = wider
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)
        )

    @property
    def parts(self) -> list[nn.Module]:
        """Return the model as three consecutive modules, with 6, 19 and 75 % of the parameters.

        The first has the stem and stages 1 and 2, the second stage 3, the third stage 4 and head.
        """
        first = nn.Sequential(self.stem, *self.stages[:2])
        return [first, self.stages[2], nn.Sequential(self.stages[3], self.head)]

    def forward(self, x: Tensor) -> Tensor:
        for part in (self.stem, *self.stages, self.head):
            x = part(x)
        return x
