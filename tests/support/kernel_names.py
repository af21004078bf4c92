"""Names of GPU kernels as compilers and libraries make them, and what another version of these calls the same kernel."""

OPS = ("add", "mul", "sigmoid", "gelu", "silu", "tanh", "exp", "neg", "sqrt", "rsqrt", "pow", "div", "abs", "cos", "sin", "erf")


def digits(rng, count):
    return "".join(rng.choice("0123456789abcdef") for _ in range(count))


def make(rng, number):
    """A kernel: a template of PyTorch, with a functor or a lambda; of Triton, with a number or a hash; CUTLASS; cuBLAS; cuDNN; someone's own."""
    op, tile = OPS[number % len(OPS)], f"{rng.choice([64, 128, 256])}x{rng.choice([64, 128])}_{rng.choice([32, 64])}x{rng.choice([3, 4, 5])}"
    return rng.choice([
        f"void at::native::vectorized_elementwise_kernel<{rng.choice([2, 4, 8])}, at::native::CUDAFunctor_{op}<float>, std::array<char*, 3ul> >"
        f"(int, at::native::CUDAFunctor_{op}<float>, std::array<char*, 3ul>)",
        f"void at::native::unrolled_elementwise_kernel<at::native::{op}_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#{number}}}::operator()() "
        f"const::{{lambda()#{rng.randrange(1, 9)}}}::operator()() const::{{lambda(float)#1}}, std::array<char*, 2ul>>(int)",
        f"triton_poi_fused_{op}_{rng.choice(['view', 'cat', 'native_layer_norm'])}_{number}",
        f"triton_red_fused_{op}_{digits(rng, 8)}",
        f"cutlass_80_tensorop_{rng.choice(['s16816gemm_f16', 'f16_s16816gemm_relu_f16'])}_{tile}_{rng.choice(['nn', 'tn', 'nt'])}_align{rng.choice([2, 8])}",
        f"ampere_{rng.choice(['sgemm', 'fp16_s16816gemm_fp16', 'scudnn'])}_128x64_ldg8_f2f_stages_{rng.choice([32, 64])}x5_{rng.choice(['nn', 'tn'])}",
        f"void cudnn::ops::{op}_{rng.choice(['fwd', 'bwd', 'wgrad'])}_{number}<float, int, {rng.choice([128, 256])}, true, 1>(float const*)",
        f"_Z{10 + number % 80}{op}_custom_{digits(rng, 6)}PKfPfi"])


def rename(rng, name):
    """The same kernel after an update: another hash, architecture, type or namespace, or a name that has nothing in common."""
    way = rng.randrange(4)
    if name.startswith("triton"):
        return name.rpartition("_")[0] + "_" + (digits(rng, 8) if way < 2 else str(rng.randrange(100, 999)))
    if name.startswith("cutlass_80") and way < 3:
        return name.replace("cutlass_80", "cutlass_90")
    if name.startswith("ampere") and way < 2:
        return name.replace("ampere", "hopper")
    if name.startswith("void") and way < 3:
        return (name.replace("float", "c10::Half"), name.replace("at::native::", "at::cuda::detail::").replace("cudnn::ops", "cudnn::v9"),
                name.replace("<4,", "<8,").replace("<float", "<__half"))[way]
    return f"fused_{digits(rng, 10)}_kernel"
