"""Compiles the Triton kernels for one GPU that need not be there, and writes what came out.

Run as a program, in a process of its own: within the tests Triton interprets, and an interpreted
kernel cannot be compiled. Argument: the compute capability, such as 90. Output: one JSON object,
kernel and dtype to the kinds of code that were made and the bytes of shared memory.
"""

import json
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from chatserve.kernels.triton.paged_decode import decode_merge_kernel, decode_split_kernel

WARP_SIZE = 32


def compile_all(capability: int) -> dict[str, dict[str, object]]:
    """Compile for the shapes of the default model, and the widest head in each dtype."""
    compiled = {}
    for dtype in ("bf16", "fp16", "fp32"):
        for head_dim in (64, 128):
            for name, source in _sources(dtype, head_dim).items():
                kernel = triton.compile(
                    source,
                    target=GPUTarget("cuda", capability, WARP_SIZE),
                    options={"enable_fp_fusion": True},
                )
                compiled[f"{name}-{dtype}-{head_dim}"] = {
                    "kinds": sorted(kernel.asm),
                    "shared_bytes": kernel.metadata.shared,
                }
    return compiled


def _sources(dtype: str, head_dim: int) -> dict[str, ASTSource]:
    kv = dict.fromkeys(("k_ptr", "v_ptr"), f"*{dtype}")
    return {
        "split": ASTSource(
            decode_split_kernel,
            signature={
                "q_ptr": f"*{dtype}",
                **kv,
                "page_table_ptr": "*i32",
                "seq_lens_ptr": "*i32",
                "partial_ptr": "*fp32",
                "lse_ptr": "*fp32",
                "scale": "fp32",
                "max_pages": "i32",
            },
            constexprs={
                "PAGE_SIZE": 16,
                "NUM_KV_HEADS": 3,
                "GROUP_SIZE": 3,
                "HEAD_DIM": head_dim,
                "BLOCK_G": 16,
                "BLOCK_N": 64,
                "BLOCK_D": head_dim,
            },
        ),
        "merge": ASTSource(
            decode_merge_kernel,
            signature={
                "partial_ptr": "*fp32",
                "lse_ptr": "*fp32",
                "out_ptr": f"*{dtype}",
                "num_splits": "i32",
            },
            constexprs={"HEAD_DIM": head_dim, "BLOCK_S": 16, "BLOCK_D": head_dim},
        ),
    }


if __name__ == "__main__":
    json.dump(compile_all(int(sys.argv[1])), sys.stdout)
