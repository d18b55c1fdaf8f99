#!/usr/bin/env python3
"""Writes wam/data/transform_golden.inc: what torch and torchvision make of small pictures.

Needs torch and torchvision from PyPI (CPU is enough); the product never runs this.
    python3 tools/gen_transform_golden.py > wam/data/transform_golden.inc
The input pixel (y, x, c) is (37 x + 91 y + 53 c + 11 ((x y) mod 17)) mod 256, so that the test can
make it without a file.
"""
import torch
import torchvision
import torchvision.transforms.v2.functional as F
from torch.nn.functional import interpolate


def picture(height, width):
    y = torch.arange(height).view(-1, 1, 1)
    x = torch.arange(width).view(1, -1, 1)
    c = torch.arange(3).view(1, 1, -1)
    u8 = ((37 * x + 91 * y + 53 * c + 11 * ((x * y) % 17)) % 256).to(torch.uint8)
    return u8.permute(2, 0, 1)


def unit(u8):
    return u8.to(torch.float32) / 255.0


def table(name, values, per_line, text):
    flat = values.flatten().tolist()
    print(f"constexpr {text} {name}[] = {{")
    for i in range(0, len(flat), per_line):
        row = flat[i : i + per_line]
        cells = [f"{v:.9g}f" if text == "float" else str(int(v)) for v in row]
        cells = [c if "." in c or "e" in c or text != "float" else c[:-1] + ".0f" for c in cells]
        print("    " + ", ".join(cells) + ",")
    print("};\n")


def resize_cases():
    for i, (h, w, oh, ow) in enumerate([(13, 17, 5, 6), (7, 6, 9, 11), (40, 9, 6, 9), (5, 64, 8, 3)]):
        image = unit(picture(h, w))
        out = F.resize(image, [oh, ow], antialias=True)
        table(f"kAntialias{i}", out, 6, "float")
        out = interpolate(image[None], size=(oh, ow), mode="bilinear", align_corners=False)[0]
        table(f"kBilinear{i}", out, 6, "float")


def jitter_cases():
    image = unit(picture(4, 5))
    table("kBrightness", F.adjust_brightness(image, 1.25), 5, "float")
    table("kContrast", F.adjust_contrast(image, 0.7), 5, "float")
    table("kSaturation", F.adjust_saturation(image, 1.4), 5, "float")
    table("kHueUp", F.adjust_hue(image, 0.07), 5, "float")
    table("kHueDown", F.adjust_hue(image, -0.08), 5, "float")
    flat = torch.tensor([0.0, 1.0, 0.25, 0.5]).view(1, 2, 2).expand(3, 2, 2).contiguous()
    table("kHueFlat", F.adjust_hue(flat, 0.08), 4, "float")


def chain_case():
    """Crop box (2, 1, 19, 15) of 21 x 17, resize to 12 x 10, hue, contrast, brightness, saturation."""
    image = unit(picture(21, 17))[:, 2:21, 1:16]
    out = F.resize(image, [12, 10], antialias=True)
    out = F.adjust_hue(out, -0.05)
    out = F.adjust_contrast(out, 1.3)
    out = F.adjust_brightness(out, 0.9)
    out = F.adjust_saturation(out, 0.6)
    table("kChain", out, 5, "float")
    table("kChainBytes", (out.permute(1, 2, 0) * 255).to(torch.uint8), 15, "int")


if __name__ == "__main__":
    print(f"// Written by tools/gen_transform_golden.py with torch {torch.__version__}, "
          f"torchvision {torchvision.__version__}.")
    print("// Do not edit.\n")
    resize_cases()
    jitter_cases()
    chain_case()
