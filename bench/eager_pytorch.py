#!/usr/bin/env python3
"""Forward and backward of the yardstick (recipes/bench-small.toml) in eager PyTorch on a CPU, to compare
`zaya bench step` with. Needs PyTorch 2.4 or newer, which nothing here installs.

  python3 bench/eager_pytorch.py --threads 2 --mode both
  python3 bench/eager_pytorch.py --check tests/fixtures/native-a

Written as a good engineer would without torch.compile or kernels of their own; the formulas are those of
docs/zaya1.md. --check compares it with reference tensors instead (needs safetensors).
--malloc kept: the C library keeps freed memory (else every large tensor is mapped and zeroed anew by
the kernel); --malloc huge: kept, in huge pages. Engines keep their buffers, so that is the fair one.
"""
import argparse
import json
import math
import os
import resource
import statistics
import sys
import time
from types import SimpleNamespace

import torch
import torch.nn.functional as F

BENCH_SMALL = SimpleNamespace(vocab=8192, D=512, blocks=8, nq=4, nk=2, d=64, time0=2, time1=2, E=8,
                              I=512, R=128, eps=1e-5, theta=10000.0)


# ---------------------------------------------------------------- parameters

def random_params(c, dtype):
    """Matrices and embeddings in dtype; vectors, norms and everything of the router in fp32."""
    def n(*shape, std=0.02, dt=dtype):
        return (torch.randn(*shape) * std).to(dt).requires_grad_()

    def full(value, *shape):
        return torch.full(shape, float(value)).requires_grad_()

    channels = (c.nq + c.nk) * c.d
    P = SimpleNamespace(E=n(c.vocab, c.D), b_in=full(0, c.D), s_in=full(1, c.D), norm=full(1, c.D),
                        blocks=[])
    for i in range(c.blocks):
        def merge():
            return [full(0, c.D), full(1, c.D), full(0, c.D), full(1, c.D)]  # hb, hs, rb, rs

        r = lambda o, k: n(o, k, std=1 / math.sqrt(k), dt=torch.float32)
        bias = torch.zeros(c.E + 1)
        bias[c.E] = -1.0  # no token skips: every token costs one expert, as the FLOP count says
        P.blocks.append(SimpleNamespace(
            norm1=full(1, c.D), norm2=full(1, c.D), merge1=merge(), merge2=merge(),
            Wqkv=n(channels + c.nk * c.d, c.D),  # Wq, Wk, Wv_current, Wv_delayed: one product
            dw_w=n(channels, 1, c.time0), dw_b=n(channels, std=0),
            gc_w=n(channels, c.d, c.time1), gc_b=n(channels, std=0),
            temp=full(1, c.nk), Wo=n(c.D, c.nq * c.d),
            Wdown=r(c.R, c.D), bdown=full(0, c.R), gamma=full(1, c.R) if i else None,
            rnorm=full(1, c.R), W1=r(c.R, c.R), b1=full(0, c.R), W2=r(c.R, c.R), b2=full(0, c.R),
            W3=r(c.E + 1, c.R), bal=bias,
            gate_up=[n(2 * c.I, c.D) for _ in range(c.E)],  # a leaf per expert: no stacking of gradients
            down=[n(c.D, c.I) for _ in range(c.E)]))
    return P


def leaves(P):
    for b in [P] + P.blocks:
        for v in vars(b).values():
            for t in v if isinstance(v, list) else [v]:
                if isinstance(t, torch.Tensor) and t.requires_grad:
                    yield t


# ---------------------------------------------------------------- model

def rotary_tables(c, T):
    half = c.d // 4  # rotary covers d/2 of the head, in two halves
    freq = c.theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(T, dtype=torch.float64)[:, None] * freq
    angle = torch.cat([angle, angle], -1)
    return angle.cos().float()[:, None, :], angle.sin().float()[:, None, :]  # [T, 1, d/2]


def rotary(x, cos, sin):  # [B, T, heads, d]
    a, rest = x.split(x.shape[-1] // 2, -1)
    lo, hi = a.chunk(2, -1)
    return torch.cat([a * cos + torch.cat([-hi, lo], -1) * sin, rest], -1)


def attention(c, p, h, cos, sin, dtype):  # h [B, T, D] in dtype
    B, T, _ = h.shape
    G, qd, kd = c.nq // c.nk, c.nq * c.d, c.nk * c.d
    qk0, v_current, v_delayed = F.linear(h, p.Wqkv).split([qd + kd, kd // 2, kd // 2], -1)
    # convolutions, [B, channels, T]; padded once
    z = F.pad(qk0.transpose(1, 2), (c.time0 - 1 + c.time1 - 1, 0))
    z = F.conv1d(z, p.dw_w, p.dw_b, groups=qd + kd)
    z = F.conv1d(z, p.gc_w, p.gc_b, groups=c.nq + c.nk)
    # [B, T, channels] in memory too: else q is strided and attention falls back to the unfused kernel
    z = z.transpose(1, 2).contiguous().float()
    # mean path, norm and rotary in fp32
    q0, k0 = qk0.float().split([qd, kd], -1)
    mq = (q0.view(B, T, c.nk, G, c.d) + k0.view(B, T, c.nk, 1, c.d)) * 0.5
    mk = mq.mean(3)
    zq, zk = z.split([qd, kd], -1)
    q = F.normalize(zq.reshape(B, T, c.nq, c.d) + mq.view(B, T, c.nq, c.d), dim=-1, eps=c.eps)
    k = F.normalize(zk.reshape(B, T, c.nk, c.d) + mk, dim=-1, eps=c.eps)
    q = rotary(q * math.sqrt(c.d), cos, sin).to(dtype)
    k = rotary(k * (p.temp * math.sqrt(c.d))[:, None], cos, sin).to(dtype)
    v_delayed = F.pad(v_delayed, (0, 0, 1, 0))[:, :T]
    v = torch.cat([v_current, v_delayed], -1).view(B, T, c.nk, c.d)
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)  # [B, heads, T, d]
    if G > 1:
        k, v = k.repeat_interleave(G, 1), v.repeat_interleave(G, 1)
    o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.linear(o.transpose(1, 2).reshape(B, T, qd), p.Wo)


def route(c, p, h, r_previous):  # h [N, D] fp32; gives r, e [N], s[e] [N]
    r = F.linear(h, p.Wdown, p.bdown)
    if p.gamma is not None:
        r = r + r_previous * p.gamma
    u = F.rms_norm(r, (c.R,), p.rnorm, c.eps)
    u = F.gelu(F.linear(u, p.W1, p.b1))
    u = F.gelu(F.linear(u, p.W2, p.b2))
    s = F.softmax(F.linear(u, p.W3), -1)
    e = (s.detach() + p.bal).argmax(-1)
    return r, e, s.gather(1, e[:, None])[:, 0]


def experts(c, p, h, e, weight):  # h [N, D] in dtype
    order = e.argsort()
    counts = torch.bincount(e, minlength=c.E + 1).tolist()
    order = order[:h.shape[0] - counts[c.E]]  # those that skip sort last; their y is 0
    ys = []
    for x, gate_up, down in zip(h.index_select(0, order).split(counts[:c.E]), p.gate_up, p.down):
        if x.shape[0]:
            g, u = F.linear(x, gate_up).chunk(2, -1)
            ys.append(F.linear(F.silu(g) * u, down))
    y = torch.cat(ys) * weight.index_select(0, order)[:, None].to(h.dtype)
    return torch.zeros_like(h).index_copy(0, order, y), counts


def merge(o, x, m):
    hb, hs, rb, rs = m
    return (o + hb) * hs + (x + rb) * rs


def forward(c, P, ids, dtype, trace=None):
    B, T = ids.shape
    cos, sin = rotary_tables(c, T)
    x = (F.embedding(ids, P.E).float() + P.b_in) * P.s_in  # the residual stream: fp32
    r = None
    for p in P.blocks:
        h = F.rms_norm(x, (c.D,), p.norm1, c.eps).to(dtype)
        x = merge(attention(c, p, h, cos, sin, dtype), x, p.merge1)
        h = F.rms_norm(x, (c.D,), p.norm2, c.eps).view(B * T, c.D)
        r, e, weight = route(c, p, h, r)
        y, counts = experts(c, p, h.to(dtype), e, weight)
        x = merge(y.view(B, T, c.D), x, p.merge2)
        if trace is not None:
            trace.append((x, e, counts))
    return F.linear(F.rms_norm(x, (c.D,), P.norm, c.eps).to(dtype), P.E)


def loss_of(logits, labels):
    return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), labels.view(-1), ignore_index=-100)


# ---------------------------------------------------------------- check against a reference folder

def check(folder):
    from safetensors.torch import load_file
    j = json.load(open(f"{folder}/config.json"))
    w, ref = load_file(f"{folder}/model.safetensors"), load_file(f"{folder}/reference.safetensors")
    rope = j["rope_parameters"]["hybrid"]
    assert rope["partial_rotary_factor"] == 0.5 and j["tie_word_embeddings"] and not j["sliding_window"]
    c = SimpleNamespace(vocab=j["vocab_size"], D=j["hidden_size"], blocks=j["num_hidden_layers"],
                        nq=j["num_attention_heads"], nk=j["num_key_value_heads"], d=j["head_dim"],
                        time0=j["cca_time0"], time1=j["cca_time1"], E=j["num_experts"],
                        I=j["moe_intermediate_size"], R=j["router_hidden_size"], eps=j["rms_norm_eps"],
                        theta=rope["rope_theta"])
    w = {k.removeprefix("model."): v.requires_grad_() for k, v in w.items()}
    gradients = {}  # name -> a function that gives the gradient

    def t(name):
        gradients[name] = lambda: w[name].grad
        return w[name]

    def fused(names):
        whole = torch.cat([w[n].detach() for n in names]).requires_grad_()
        at = 0
        for n in names:
            rows = len(w[n])
            gradients[n] = lambda a=at, b=at + rows: whole.grad[a:b]
            at += rows
        return whole

    def split(name):
        parts = [x.clone().requires_grad_() for x in w[name].detach()]
        gradients[name] = lambda: torch.stack(
            [torch.zeros_like(x) if x.grad is None else x.grad for x in parts])
        return parts

    def merge4(place):
        return [t(f"{place}.{n}") for n in ("hidden_states_bias", "hidden_states_scale", "residual_bias",
                                            "residual_scale")]

    P = SimpleNamespace(E=t("embed_tokens.weight"), b_in=t("input_hidden_states_bias"),
                        s_in=t("input_hidden_states_scale"), norm=t("norm.weight"), blocks=[])
    for i in range(c.blocks):
        L = f"layers.{i}"
        a, g = f"{L}.self_attn", f"{L}.mlp.gate"
        qkv, m = f"{a}.qkv_proj", f"{L}.mlp.gate.router_mlp"
        P.blocks.append(SimpleNamespace(
            norm1=t(f"{L}.input_layernorm.weight"), norm2=t(f"{L}.post_attention_layernorm.weight"),
            merge1=merge4(f"{L}.post_attention_residual_scale"),
            merge2=merge4(f"{L}.post_mlp_residual_scale"),
            Wqkv=fused([f"{qkv}.{n}.weight" for n in ("q_proj", "k_proj", "v_proj_current",
                                                      "v_proj_delayed")]),
            dw_w=t(f"{qkv}.conv_qk_depthwise.weight"), dw_b=t(f"{qkv}.conv_qk_depthwise.bias"),
            gc_w=t(f"{qkv}.conv_qk_grouped.weight"), gc_b=t(f"{qkv}.conv_qk_grouped.bias"),
            temp=t(f"{a}.qk_norm.temp"), Wo=t(f"{a}.o_proj.weight"),
            Wdown=t(f"{g}.down_proj.weight"), bdown=t(f"{g}.down_proj.bias"),
            gamma=t(f"{g}.router_states_scale") if i else None, rnorm=t(f"{m}.norm.weight"),
            W1=t(f"{m}.fc1.weight"), b1=t(f"{m}.fc1.bias"), W2=t(f"{m}.fc2.weight"),
            b2=t(f"{m}.fc2.bias"), W3=t(f"{m}.out_proj.weight"),
            bal=w[f"{g}.balancing_biases"].detach(),
            gate_up=split(f"{L}.mlp.experts.gate_up_proj"), down=split(f"{L}.mlp.experts.down_proj")))
    trace = []
    logits = forward(c, P, ref["input_ids"], torch.float32, trace)
    loss = loss_of(logits, ref["labels"])
    loss.backward()
    e = torch.stack([t[1] for t in trace]).view_as(ref["expert_choice"])
    worst = lambda a, b: (a - b).abs().max().item()
    wanted = {k.removeprefix("grad.model."): v for k, v in ref.items() if k.startswith("grad.")}
    errors = {n: worst(gradients[n](), v) / max(v.abs().max().item(), 1e-12) for n, v in wanted.items()}
    name = max(errors, key=errors.get)
    print(f"{folder}: logits off by {worst(logits, ref['logits']):.2e}, loss by {worst(loss, ref['loss']):.2e}, "
          f"hidden by {max(worst(t[0], ref[f'hidden.{i}']) for i, t in enumerate(trace)):.2e}; "
          f"expert choices differ: {(e != ref['expert_choice']).sum().item()} of {e.numel()} "
          f"(skipped: {(e == c.E).sum().item()}); {len(errors)} gradients, worst off by "
          f"{errors[name]:.2e} of its largest element ({name})")
    assert worst(logits, ref["logits"]) < 1e-4 and (e == ref["expert_choice"]).all() and errors[name] < 1e-3


# ---------------------------------------------------------------- speed

def model_flops_per_token(c, T):
    """Forward and backward: 3 x 2 x multiply-adds of the forward."""
    qd, kd = c.nq * c.d, c.nk * c.d
    projections = c.D * (qd + kd + kd) + qd * c.D
    conv = (qd + kd) * c.d * c.time1
    attend = 2 * qd * (T + 1) / 2
    router = c.D * c.R + 2 * c.R * c.R + c.R * (c.E + 1)
    block = projections + conv + attend + router + 3 * c.D * c.I
    return 3 * 2 * (c.blocks * block + c.D * c.vocab)


def matmul_peak(dtype):
    rates = {}
    for m, k, n in ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 512, 512)):
        a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
        out = torch.empty(m, n, dtype=dtype)
        best, end, count = math.inf, time.perf_counter() + 0.7, 0
        while count < 5 or time.perf_counter() < end:
            t0 = time.perf_counter()
            torch.matmul(a, b, out=out)
            best = min(best, time.perf_counter() - t0)
            count += 1
        rates[f"{m}x{k}x{n}"] = 2 * m * k * n / best / 1e9
    return max(rates.values()), rates


def cpu_seconds():
    """What the whole machine and this process have used so far."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, soft, steal = map(int, f.readline().split()[1:9])
    hz = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + soft) / hz, steal / hz, sum(os.times()[:2])


def measure(c, mode, args):
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[mode]
    torch.manual_seed(1)
    P = random_params(c, dtype)
    params = list(leaves(P))
    ids = torch.randint(c.vocab, (args.batch, args.seq_len))
    labels = ids.roll(-1, 1)
    labels[:, -1] = -100

    def step(trace=None):
        for p in params:
            p.grad = None
        loss = loss_of(forward(c, P, ids, dtype, trace), labels)
        loss.backward()
        return loss.item()

    trace = []
    loss = step(trace)
    counts = [t[2] for t in trace]
    del trace
    peak_before = matmul_peak(dtype)
    for _ in range(args.warmup - 1):
        step()
    seconds, cpu, wall = [], cpu_seconds(), time.perf_counter()
    for _ in range(args.repeat):
        t0 = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - t0)
    wall = time.perf_counter() - wall
    used, steal, own = (b - a for a, b in zip(cpu, cpu_seconds()))
    peak_after = matmul_peak(dtype)
    peak = max(peak_before[0], peak_after[0])
    shapes = {k: max(v, peak_after[1][k]) for k, v in peak_before[1].items()}
    N = args.batch * args.seq_len
    flops = model_flops_per_token(c, args.seq_len) * N
    median, best = statistics.median(seconds), min(seconds)
    print(f"{mode}: {sum(p.numel() for p in params) / 1e6:.2f} M parameters, {args.batch} x {args.seq_len} tokens, "
          f"loss {loss:.4f}, tokens per expert in block 0 {counts[0][:c.E]} skip {counts[0][c.E]}, "
          f"in the last {counts[-1][:c.E]} skip {counts[-1][c.E]}")
    print(f"  matmul GFLOP/s: " + ", ".join(f"{k} {v:.1f}" for k, v in shapes.items()) + f"; peak {peak:.1f}")
    print(f"  model FLOPs: {flops / 1e9:.2f} G ({flops / N / 1e6:.2f} M per token)")
    for name, s in (("median", median), ("best", best)):
        print(f"  {name}: {s:.4f} s, {N / s:.0f} tokens/s, {flops / s / 1e9:.1f} GFLOP/s, "
              f"utilisation {flops / s / 1e9 / peak:.3f}")
    print(f"  all: {' '.join(f'{s:.3f}' for s in seconds)}; "
          f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB; "
          f"cores in use meanwhile: {own / wall:.2f} here, {(used - own) / wall:.2f} by others, "
          f"{steal / wall:.2f} stolen", flush=True)
    if args.profile:
        with torch.profiler.profile() as prof:
            step()
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=30,
                                        max_name_column_width=45))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--mode", choices=("fp32", "bf16", "both"), default="both")
    a.add_argument("--batch", type=int, default=8)
    a.add_argument("--seq-len", type=int, default=512)
    a.add_argument("--warmup", type=int, default=2)
    a.add_argument("--repeat", type=int, default=5)
    a.add_argument("--check", metavar="FOLDER")
    a.add_argument("--profile", action="store_true")
    a.add_argument("--malloc", choices=("default", "kept", "huge"), default="huge")
    args = a.parse_args()
    if args.malloc != "default" and "MALLOC_MMAP_MAX_" not in os.environ:
        os.environ.update(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(2**34))
        if args.malloc == "huge":
            os.environ["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
        os.execv(sys.executable, [sys.executable] + sys.argv)
    torch.set_num_threads(args.threads)
    if args.check:
        return check(args.check)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, "
          f"{torch.backends.cpu.get_cpu_capability()}, fp32 matmul {torch.get_float32_matmul_precision()}, malloc {args.malloc}")
    for mode in ("fp32", "bf16") if args.mode == "both" else (args.mode,):
        measure(BENCH_SMALL, mode, args)


main()
