#!/usr/bin/env python3
"""The demo model's training step in PyTorch on the same cores, beside `wam bench step`.

Needs torch from PyPI. Usage: OMP_NUM_THREADS=2 python3 tools/bench_torch.py [--steps 20] [--compile]
Sizes are those of configs/demo.yaml; attention runs both with one dense mask and rectangle by
rectangle, and the faster of the two is the peer.
"""
import argparse
import math
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


def parse_args():
    p = argparse.ArgumentParser()
    for name, value in dict(batch=8, dim=144, layers=5, heads=3, ffn=576, text=320, text_dim=64,
                            clip=17, clip_dim=64, channels=12, height=2, width=4, blocks=3, actions=8,
                            action_dim=4, state_dim=4, coder=128, steps=20).items():
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--compile", action="store_true")
    return p.parse_args()


class Layout:
    """Token ranges and whom each range attends to, in the order clean, noisy, actions, states."""

    def __init__(self, c):
        self.s = (c.height // 2) * (c.width // 2)
        self.frames = 2 * c.blocks + 1
        self.n = self.frames * self.s
        self.length = 2 * self.n + c.blocks * (c.actions + 1)
        s, n = self.s, self.n
        act, state = 2 * n, 2 * n + c.blocks * c.actions
        self.rects = [(range(0, s), [range(0, s)]), (range(n, n + s), [range(n, n + s)])]
        for i in range(c.blocks):
            video = range((1 + 2 * i) * s, (3 + 2 * i) * s)
            noisy = range(n + video.start, n + video.stop)
            own = range(act + i * c.actions, act + (i + 1) * c.actions)
            st = range(state + i, state + i + 1)
            past = range(0, video.start)
            self.rects.append((video, [range(0, video.stop)]))
            self.rects.append((list(noisy) + list(own), [past, noisy, own, st]))
            self.rects.append((st, [st]))
        self.mask = torch.zeros(self.length, self.length, dtype=torch.bool)
        self.queries, self.keys = [], []
        for q, ks in self.rects:
            k = [j for r in ks for j in r]
            self.mask[torch.tensor(list(q))[:, None], torch.tensor(k)] = True
            self.queries.append(torch.tensor(list(q)))
            self.keys.append(torch.tensor(k))


def rope(x, table):
    pairs = x.unflatten(-1, (-1, 2))
    cos, sin = table[:, None, :, 0], table[:, None, :, 1]
    a, b = pairs[..., 0], pairs[..., 1]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c.dim
        self.heads = c.heads
        self.modulation = nn.Parameter(torch.randn(6, d) / d**0.5)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.cq, self.co = nn.Linear(d, d), nn.Linear(d, d)
        self.kv, self.kv_img = nn.Linear(d, 2 * d), nn.Linear(d, 2 * d)
        self.nq, self.nk, self.ncq = RMSNorm(d), RMSNorm(d), RMSNorm(d)
        self.nck, self.nck_img = RMSNorm(d), RMSNorm(d)
        self.norm3 = nn.LayerNorm(d, eps=1e-6)
        self.up, self.down = nn.Linear(d, c.ffn), nn.Linear(c.ffn, d)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1))

    def attend(self, q, k, v, layout, dense):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if dense:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=layout.mask)
        else:
            y = torch.empty_like(q)
            for qi, ki in zip(layout.queries, layout.keys):
                y[:, :, qi] = F.scaled_dot_product_attention(q[:, :, qi], k[:, :, ki], v[:, :, ki])
        return y.transpose(1, 2).flatten(2)

    def cross(self, q, kv, norm):
        k, v = kv.chunk(2, -1)
        k, v = self.split(norm(k)).transpose(1, 2), self.split(v).transpose(1, 2)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def forward(self, x, e, text, image, table, layout, dense):
        d = x.shape[-1]
        m = (self.modulation + e).unbind(2)
        h = F.layer_norm(x, (d,), eps=1e-6) * (1 + m[1]) + m[0]
        q, k, v = self.qkv(h).chunk(3, -1)
        q, k = rope(self.split(self.nq(q)), table), rope(self.split(self.nk(k)), table)
        x = x + m[2] * self.o(self.attend(q, k, self.split(v), layout, dense))
        q = self.split(self.ncq(self.cq(self.norm3(x)))).transpose(1, 2)
        x = x + self.co(self.cross(q, self.kv(text), self.nck) + self.cross(q, self.kv_img(image), self.nck_img))
        h = F.layer_norm(x, (d,), eps=1e-6) * (1 + m[4]) + m[3]
        return x + m[5] * self.down(F.gelu(self.up(h), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c.dim
        self.c, self.layout = c, Layout(c)
        self.patch = nn.Linear(4 * c.channels, d)
        self.text = nn.Sequential(nn.Linear(c.text_dim, d), nn.GELU("tanh"), nn.Linear(d, d))
        self.image = nn.Sequential(nn.LayerNorm(c.clip_dim), nn.Linear(c.clip_dim, c.clip_dim), nn.GELU(),
                                   nn.Linear(c.clip_dim, d), nn.LayerNorm(d))
        self.time = nn.Sequential(nn.Linear(256, d), nn.SiLU(), nn.Linear(d, d))
        self.project = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))
        self.a1, self.a2, self.a3 = nn.Linear(c.action_dim, d), nn.Linear(2 * d, d), nn.Linear(d, d)
        self.state = nn.Sequential(nn.Linear(c.state_dim, c.coder), nn.ReLU(), nn.Linear(c.coder, d))
        self.decode = nn.Sequential(nn.Linear(d, c.coder), nn.ReLU(), nn.Linear(c.coder, c.action_dim))
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.head_modulation = nn.Parameter(torch.randn(2, d) / d**0.5)
        self.head = nn.Linear(d, 4 * c.channels)
        table = torch.randn(self.layout.length, d // c.heads // 2, 2)
        self.register_buffer("table", table / table.norm(dim=-1, keepdim=True))

    @staticmethod
    def wave(t, dim):
        half = dim // 2
        angle = t[..., None] * torch.exp(-math.log(10000.0) * torch.arange(half) / half)
        return torch.cat((angle.cos(), angle.sin()), -1)

    def forward(self, clean, noisy, action, state, text, clip, t_video, t_action, dense):
        c, lay = self.c, self.layout
        x = torch.cat((self.patch(clean), self.patch(noisy),
                       self.a3(F.silu(self.a2(torch.cat((self.a1(action), self.wave(t_action, c.dim)), -1)))),
                       self.state(state)), 1)
        per_frame = torch.cat((torch.zeros_like(t_video).repeat_interleave(lay.s, 1),
                               t_video.repeat_interleave(lay.s, 1), t_action, t_action[:, :: c.actions]), 1)
        emb = self.time(self.wave(per_frame, 256))
        e = self.project(emb).unflatten(-1, (6, c.dim))
        text, image = self.text(text), self.image(clip)
        for block in self.blocks:
            x = block(x, e, text, image, self.table, lay, dense)
        video = x[:, lay.n:2 * lay.n]
        m = (self.head_modulation + emb[:, lay.n:2 * lay.n, None]).unbind(2)
        out = self.head(F.layer_norm(video, (c.dim,), eps=1e-6) * (1 + m[1]) + m[0])
        return out, self.decode(x[:, 2 * lay.n:2 * lay.n + c.blocks * c.actions])


def measure(c, dense):
    torch.manual_seed(0)
    model = Model(c)
    lay = model.layout
    run = torch.compile(model) if c.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.95, 0.999), fused=True)
    n, ka = lay.n, c.blocks * c.actions
    data = dict(clean=torch.randn(c.batch, n, 4 * c.channels), noisy=torch.randn(c.batch, n, 4 * c.channels),
                action=torch.randn(c.batch, ka, c.action_dim), state=torch.randn(c.batch, c.blocks, c.state_dim),
                text=torch.randn(c.batch, c.text, c.text_dim), clip=torch.randn(c.batch, c.clip, c.clip_dim),
                t_video=torch.rand(c.batch, lay.frames) * 1000, t_action=torch.rand(c.batch, ka) * 1000)
    target, action_target = torch.randn(c.batch, n, 4 * c.channels), torch.randn(c.batch, ka, c.action_dim)
    times = []
    for _ in range(c.steps + 2):
        start = time.perf_counter()
        video, action = run(**data, dense=dense)
        loss = (video - target).pow(2).mean() + (action - action_target).pow(2).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:]), sum(p.numel() for p in model.parameters())


def main():
    c = parse_args()
    for dense in (True, False):
        seconds, parameters = measure(c, dense)
        print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {parameters} parameters, "
              f"{'dense mask' if dense else 'rectangles'}{', compiled' if c.compile else ''}: "
              f"{1e3 * seconds:.2f} ms a step, {c.batch / seconds:.2f} samples/s")


if __name__ == "__main__":
    main()
