"""All layers in one call of the library: the same bits as op by op."""

from dataclasses import replace

import pytest
import torch
from kernel_helpers import HeadShape, PagedCase, cpu_ops, make_paged
from torch import Tensor

from chatserve.kernels.cpu import CpuOps
from chatserve.kernels.cpu.build import LEVELS
from chatserve.kernels.cpu.layer_stack import CpuStack
from chatserve.kernels.layer_stack import OpByOpStack
from chatserve.kernels.ops import (
    AttentionBatch,
    KVPages,
    LayerStack,
    LayerWeights,
    PackedLinear,
    StackInputs,
    StackWeights,
)

HIDDEN, INTERMEDIATE, NUM_LAYERS, PAGE_SIZE = 48, 80, 3, 4
VOCAB_SIZE, NUM_POSITIONS = 50, 64
HEADS = HeadShape(num_heads=6, num_kv_heads=2, head_dim=16)


@pytest.fixture(params=LEVELS)
def ops(request: pytest.FixtureRequest) -> CpuOps:
    return cpu_ops(request.param)


def random(*shape: int, seed: int, scale: float = 0.3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) * scale).bfloat16()


def make_weights(ops: CpuOps, *, bias: bool) -> StackWeights:
    num_qkv = (HEADS.num_heads + 2 * HEADS.num_kv_heads) * HEADS.head_dim
    attended = HEADS.num_heads * HEADS.head_dim

    def linear(out_features: int, in_features: int, seed: int) -> PackedLinear:
        weight = random(out_features, in_features, seed=seed)
        return ops.pack_linear(
            weight, random(out_features, seed=seed) if bias else None, torch.bfloat16
        )

    layers = [
        LayerWeights(
            attention_norm=random(HIDDEN, seed=seed),
            qkv_proj=linear(num_qkv, HIDDEN, seed + 1),
            o_proj=linear(HIDDEN, attended, seed + 2),
            mlp_norm=random(HIDDEN, seed=seed + 3),
            gate_up_proj=linear(2 * INTERMEDIATE, HIDDEN, seed + 4),
            down_proj=linear(HIDDEN, INTERMEDIATE, seed + 5),
        )
        for seed in range(0, 100 * NUM_LAYERS, 100)
    ]
    angles = torch.arange(NUM_POSITIONS * HEADS.head_dim // 2).view(NUM_POSITIONS, -1).float()
    return StackWeights(
        embed_tokens=random(VOCAB_SIZE, HIDDEN, seed=3),
        cos=angles.cos(),
        sin=angles.sin(),
        layers=layers,
        final_norm=random(HIDDEN, seed=7),
        head_dim=HEADS.head_dim,
        rms_norm_eps=1e-5,
    )


class Case:
    """A step of decodes and prefills in the middle of their requests, in a poisoned pool."""

    def __init__(self, decode_lens: list[int], prefills: list[tuple[int, int]]):
        """Prefills are pairs of query tokens and KV tokens, the queries included."""
        decodes = make_paged(decode_lens or [1], HEADS, page_size=PAGE_SIZE, dtype=torch.bfloat16)
        chunks = make_paged(
            [end for _, end in prefills] or [1], HEADS, page_size=PAGE_SIZE, dtype=torch.bfloat16
        )
        offset = len(decodes.k_pages)
        self.kv = KVPages(
            k=_layers(decodes.k_pages, chunks.k_pages), v=_layers(decodes.v_pages, chunks.v_pages)
        )
        runs = [(decodes, i, 1, end, 0) for i, end in enumerate(decode_lens)]
        runs += [(chunks, i, n, end, offset) for i, (n, end) in enumerate(prefills)]
        slots = [_slots(*run) for run in runs]
        self.num_tokens = sum(map(len, slots))
        lengths = [n for n, _ in prefills]
        self.batch = AttentionBatch(
            slot_mapping=torch.cat(slots),
            num_decodes=len(decode_lens),
            decode_page_table=decodes.page_table[: len(decode_lens)],
            decode_seq_lens=decodes.seq_lens[: len(decode_lens)],
            prefill_page_table=(chunks.page_table + offset).int()[: len(prefills)],
            prefill_seq_lens=chunks.seq_lens[: len(prefills)],
            cu_seqlens_q=torch.tensor([0, *lengths]).cumsum(0).int(),
        )

    def run(self, stack: LayerStack, rows: list[int]) -> tuple[Tensor, KVPages]:
        """Return the final states and the pool as it is then."""
        kv = KVPages(self.kv.k.clone(), self.kv.v.clone())
        input_ids = (torch.arange(self.num_tokens) * 7) % VOCAB_SIZE
        positions = (torch.arange(self.num_tokens) * 5) % NUM_POSITIONS
        inputs = StackInputs(input_ids, positions, self.batch, torch.tensor(rows).long())
        return stack(inputs, kv), kv


def _layers(*pools: Tensor) -> Tensor:
    return torch.cat(pools).unsqueeze(0).repeat(NUM_LAYERS, 1, 1, 1, 1)


def _slots(case: PagedCase, row: int, num_queries: int, end: int, offset: int) -> Tensor:
    positions = torch.arange(end - num_queries, end)
    pages = case.page_table[row].long()[positions // PAGE_SIZE] + offset
    return pages * PAGE_SIZE + positions % PAGE_SIZE


CASES = {
    "one decode": Case([9], []),
    "decodes": Case([1, 4, 5, 70], []),
    "a whole prefill": Case([], [(7, 7)]),
    "chunks": Case([], [(5, 66), (2, 9)]),
    "everything": Case([3, 130, 64], [(11, 11), (6, 75)]),
}


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_call_gives_the_bits_of_op_by_op(ops: CpuOps, case: Case, bias: bool) -> None:
    weights = make_weights(ops, bias=bias)
    rows = list(range(case.num_tokens))

    stack = ops.stack_layers(weights)

    states, pool = case.run(stack, rows)

    expected, expected_pool = case.run(OpByOpStack(ops, weights), rows)
    assert isinstance(stack, CpuStack)
    assert states.isfinite().all()
    assert torch.equal(states, expected)
    assert torch.equal(pool.k.view(torch.int16), expected_pool.k.view(torch.int16))
    assert torch.equal(pool.v.view(torch.int16), expected_pool.v.view(torch.int16))


@pytest.mark.parametrize("rows", [[], [0], [2], [1, 3, 19], [0, 1, 2]], ids=str)
def test_asking_for_fewer_rows_changes_none_of_them(ops: CpuOps, rows: list[int]) -> None:
    stack, case = ops.stack_layers(make_weights(ops, bias=False)), CASES["everything"]

    states, pool = case.run(stack, rows)

    every, every_pool = case.run(stack, list(range(case.num_tokens)))
    assert torch.equal(states, every[rows])
    assert torch.equal(pool.k.view(torch.int16), every_pool.k.view(torch.int16))


@pytest.mark.parametrize("outside", [-1, VOCAB_SIZE])
def test_a_token_id_outside_the_embedding_is_refused(ops: CpuOps, outside: int) -> None:
    stack, case = ops.stack_layers(make_weights(ops, bias=False)), CASES["one decode"]
    ids, position, row = torch.tensor([outside]), torch.tensor([8]), torch.tensor([0])

    with pytest.raises(IndexError):
        stack(StackInputs(ids, position, case.batch, row), case.kv)


@pytest.mark.parametrize("outside", [-1, NUM_POSITIONS])
def test_a_position_outside_the_rotary_tables_is_refused(ops: CpuOps, outside: int) -> None:
    stack, case = ops.stack_layers(make_weights(ops, bias=False)), CASES["one decode"]
    ids, position, row = torch.tensor([0]), torch.tensor([outside]), torch.tensor([0])

    with pytest.raises(IndexError):
        stack(StackInputs(ids, position, case.batch, row), case.kv)


def test_the_time_of_every_stage_is_counted(ops: CpuOps) -> None:
    stack, case = ops.stack_layers(make_weights(ops, bias=False)), CASES["everything"]
    assert isinstance(stack, CpuStack)

    case.run(stack, [0])
    before = stack.seconds_by_stage()
    case.run(stack, [0])

    assert all(seconds > 0 for seconds in before.values())
    assert all(after > before[name] for name, after in stack.seconds_by_stage().items())


def test_weights_of_another_dtype_are_computed_op_by_op(ops: CpuOps) -> None:
    weights = make_weights(ops, bias=False)
    linear = ops.pack_linear(random(HIDDEN, HIDDEN, seed=0).float(), None, torch.float32)
    mixed = replace(weights.layers[0], qkv_proj=linear)

    stack = ops.stack_layers(replace(weights, layers=[mixed]))

    assert isinstance(stack, OpByOpStack)
