"""zaya bench: what it prints is there, of the right kind, and fits together. How fast anything was is no test."""

import json

from support import Program

SMALL = ["--set", "model.hidden_size=64", "--set", "model.num_hidden_layers=2", "--set", "model.vocab_size=512",
         "--set", "phases[0].seq_len=128", "--set", "phases[0].batch_tokens=512"]
GROUPS = ["projections", "convolutions", "attention", "router", "experts", "head + loss", "norms and merges", "other"]
WITHOUT_PRODUCTS = GROUPS[-2:]


def bench(program, *arguments):
    """From a folder that has no recipes/: the yardstick is built in."""
    return program.run("bench", *arguments, cwd=program.scratch).stdout


def check_numbers(report, keys):
    for key in keys:
        assert isinstance(report[key], (int, float)) and report[key] > 0, (key, report[key])


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def check_setting(report, dtype, threads):
    check_numbers(report, ["peak_gflops", "memory_bandwidth_gbytes", "tokens"])
    assert report["dtype"] == dtype and report["threads"] == threads and report["tokens"] == 512, report
    assert report["multiplied_as"] in ("f32", dtype) and report["instruction_set"], report
    assert report["recipe"] == "bench-small", report


def check_step(program):
    report = json.loads(bench(program, "step", *SMALL, "--dtype", "bf16", "--threads", 1, "--seq-len", 64,
                              "--repeats", 3, "--json"))
    check_setting(report, "bf16", 1)
    check_numbers(report, ["utilisation", "tokens_per_second", "training_tokens_per_second", "model_gflop",
                           "forward_backward_seconds", "optimizer_seconds", "predicted_peak_bytes",
                           "microseconds_per_token", "microseconds_per_token_without_attention"])
    assert report["seq_len"] == 64 and report["repeats"] == 3, report
    assert report["utilisation"] < 1, report
    seconds = report["forward_backward_seconds"]
    assert report["fastest_seconds"] <= seconds <= report["slowest_seconds"], report
    assert near(report["tokens_per_second"], 512 / seconds), report
    assert near(report["training_tokens_per_second"], 512 / (seconds + report["optimizer_seconds"])), report
    assert near(report["utilisation"], report["model_gflop"] / seconds / report["peak_gflops"]), report
    check_groups(report, seconds)
    # Of so small a model most is libraries; what matters here is that the ceilings' 384 MiB are not in it.
    assert report["peak_bytes"] is None or 1e6 < report["peak_bytes"] < 300e6, report
    assert report["predicted_peak_bytes"] < 300e6, report


def check_groups(report, seconds):
    groups = report["groups"]
    assert [group["name"] for group in groups] == GROUPS, groups
    for group in groups:
        assert group["seconds"] > 0 and near(group["share"], group["seconds"] / seconds), group
        assert (group["gflops"] == 0) == (group["name"] in WITHOUT_PRODUCTS), group
        assert near(group["fraction_of_peak"], group["gflops"] / report["peak_gflops"]), group
    assert 0.8 < sum(group["share"] for group in groups) <= 1 + 1e-9, groups
    products = sum(group["gflops"] * group["seconds"] for group in groups)
    assert near(products, report["model_gflop"]), (products, report["model_gflop"])


def check_step_text(program):
    """A recipe of one's own, its threads and its format; the global --threads is stronger than the recipe's."""
    recipe = program.write_recipe()
    text = program.run("--threads", 1, "bench", "step", "--recipe", recipe, "--set", "threads=2", "--set",
                       'dtype="f32"', "--repeats", 1).stdout
    for line in ("f32: the recipe says so", "1 thread\n", "4 x 64 tokens, median of 1", "GFLOP/s (f32)",
                 "forward + backward", "with the optimizer", "without attention", "predicted", "utilisation",
                 *GROUPS):
        assert line in text, f"wanted {line!r} in {text}"


def check_gemm(program):
    report = json.loads(bench(program, "gemm", *SMALL, "--dtype", "f32", "--threads", 1, "--json"))
    check_setting(report, "f32", 1)
    assert report["peak_gflops"] == report["f32_peak_gflops"], report
    assert report["bf16_peak_gflops"] is None or report["bf16_peak_gflops"] > 0, report
    assert [(p["m"], p["n"], p["k"]) for p in report["products"]] == [
        (512, 256, 64), (512, 128, 64), (512, 64, 256),  # queries, keys, attention's output
        (64, 1024, 64), (64, 64, 512), (512, 512, 64)], report  # an eighth of the tokens for an expert; head
    for product in report["products"]:
        for direction in ("forward", "input_gradient", "weight_gradient"):
            speed = product[direction]
            assert speed["gflops"] > 0, product
            assert near(speed["fraction_of_peak"], speed["gflops"] / report["peak_gflops"]), product
    return report["bf16_peak_gflops"] is not None


def check_gemm_text(program, has_bf16):
    text = bench(program, "gemm", *SMALL)
    why = "bf16: auto, and this machine multiplies bf16" if has_bf16 else (
        "f32: auto, and this machine has no bf16 instructions")
    for line in (why, "bench-small (built in)", "weight gradient", "an expert's gate and up", "head"):
        assert line in text, f"wanted {line!r} in {text}"


def check_decode(program):
    geometry = program.source / "tests/fixtures/native-a"
    for dtype in ("f32", "bf16", "int8", "int4"):
        report = json.loads(bench(program, "decode", "--geometry", geometry, "--dtype", dtype, "--blocks", 2,
                                  "--prompt", 20, "--tokens", 5, "--json"))
        assert (report["dtype"], report["blocks"], report["new_tokens"]) == (dtype, 2, 5), report
        assert near(report["tokens_per_second"], 1 / report["step_seconds"]), report
        read = (report["active_bytes"] + report["cache_bytes"]) / 1e9 / report["step_seconds"]
        assert near(report["roofline_fraction"], read / report["read_bandwidth_gbytes"]), report
        rate = report["prompt_gflop"] / report["prompt_seconds"]
        assert near(report["prefill_utilisation"], rate / report["peak_gflops"]), report
        assert report["fastest_seconds"] <= report["step_seconds"] <= report["slowest_seconds"], report
        assert report["peak_bytes"] is None or report["peak_bytes"] > report["weight_bytes"], report
    text = bench(program, "decode", "--geometry", geometry, "--prompt", 20, "--tokens", 5)
    for line in ("random weights", "in int4", "ceilings     reading", "of the roofline", "of the products' peak",
                 "a token"):
        assert line in text, f"wanted {line!r} in {text}"


def check_refusals(program):
    for arguments, said in ((["step", "--seq-len", 1000], ["--seq-len", "a divisor of the 4096 tokens", "1000"]),
                            (["step", "--seq-len", 8192], ["--seq-len", "a divisor of the 4096 tokens"]),
                            (["step", "--seq-len", 0], "--seq-len"),
                            (["step", "--repeats", 0], "--repeats"),
                            (["step", "--threads", 0], "--threads"),
                            (["gemm", "--threads", 1025], "--threads"),
                            (["gemm", "--dtype", "f64"], ["--dtype", "f32", "bf16", "auto"]),
                            (["gemm", "--repeats", 3], "--repeats"),
                            (["decode", "--blocks", 0], "--blocks"),
                            (["decode", "--blocks", 41], ["--blocks", "1 to 40", "41"]),
                            (["decode", "--dtype", "int3"], ["--dtype", "int4"]),
                            ([], "wanted one of gemm, step, decode, got nothing"),
                            (["steps"], 'got "steps"')):
        program.refused("bench", *arguments, said=said, status=2)
    program.refused("bench", "step", "--recipe", "none.toml", said="none.toml: No such file")
    program.refused("bench", "decode", "--geometry", "none", said="none: No such file")
    program.refused("bench", "gemm", "--set", "model.hidden=3", said=["recipes/bench-small.toml: model.hidden"])
    program.refused("bench", "step", "--set", "model.num_hidden_layers=4096", "--set", "model.hidden_size=32768",
                    said=["of memory, this machine has"])


def check_help(program):
    for command in ("bench", "bench gemm", "bench step", "bench decode"):
        text = program.run(*command.split(), "--help").stdout
        assert f"Example: zaya {command}" in text, text


if __name__ == "__main__":
    zaya = Program()
    check_help(zaya)
    check_refusals(zaya)
    check_step(zaya)
    check_step_text(zaya)
    check_gemm_text(zaya, check_gemm(zaya))
    check_decode(zaya)
