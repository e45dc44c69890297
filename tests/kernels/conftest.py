"""Lets Triton's kernels run on a machine without a GPU, in its interpreter.

The choice must be made before Triton is imported. Both backends are tested on
`kernel_helpers.DEVICE`, which is a GPU where there is one.
"""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
