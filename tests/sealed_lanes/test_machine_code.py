"""The machine code of the lanes tells nothing by its time: no jump, no address and no instruction depends on a key."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from sealed_lanes import boxes, compiled
from sealed_lanes.emit import I64, POINTER, Instructions, function
from tests.sealed_lanes.machine_code import Leak, functions, jumps, require_constant_time

FUNCTIONS = {"write_masks", "multiply", "divide", "open_boxes", "seal_boxes"}
PROCESSORS = ("icelake-server", "sapphirerapids", "znver4")


def assembly_of(module: ir.Module, processor: str = PROCESSORS[0]) -> str:
    """Return LLVM's code for a processor that need not be this one: it does not run."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=processor, features="+avx512f,+avx512ifma", opt=2)
    return str(machine.emit_assembly(llvm.parse_assembly(str(module))))


@pytest.fixture(scope="module")
def right() -> str:
    return assembly_of(boxes.module())


def require_right(assembly: str) -> None:
    assert set(functions(assembly)) == FUNCTIONS
    require_constant_time(assembly)
    # One for each loop that was written; the compiler made no other.
    assert jumps(assembly) == str(boxes.module()).count("br i1 ")


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.long(but=PROCESSORS[:1])
def test_code_takes_the_same_time_whatever_the_key(right: str, processor: str) -> None:
    require_right(right if processor == PROCESSORS[0] else assembly_of(boxes.module(), processor))


def test_this_processors_code_takes_the_same_time_whatever_the_key(lanes: compiled.Lanes) -> None:
    require_right(compiled.target_machine().emit_assembly(llvm.parse_assembly(str(boxes.module()))))


def test_planted_leaks_are_found(subtests: pytest.Subtests, right: str) -> None:
    """At the beginning of the ladder's loop, where the scratch is the first argument. The last line leaks."""
    for planted, says in (
        ("movq 768(%rdi), %r8; testq %r8, %r8; je .LBB1_1", "a jump depends"),
        ("cmpq $7, 768(%rdi); jb .LBB1_1", "a jump depends"),
        ("vmovq %xmm0, %r8", "not known to take the same time"),
        ("movq 768(%rdi), %r8; movq (%rdi,%r8,8), %r9", "an address depends"),
        ("movq 768(%rdi), %r8; movq %r8, 24(%rsp); movq 24(%rsp), %r9; movb $1, (%r9)", "an address depends"),
        (
            "movq %rdi, 24(%rsp); movl 768(%rdi), %r8d; movl %r8d, 28(%rsp); movq 24(%rsp), %r9; movb $1, (%r9)",
            "an address depends",
        ),
        ("movq %rdi, 96(%rsp); vmovdqa64 %zmm0, 64(%rsp); movq 96(%rsp), %r8; leaq 8(%r8), %r9", "an address depends"),
        ("movq 768(%rdi), %r8; cmpq $3, %r8; movl $1, %r9d; cmovbq %rdi, %r9; movq (%r9), %r8", "an address depends"),
        ("movq 768(%rdi), %r8; xorq %rdi, %r8; addq %r8, %r9; movq (%r9), %r9", "an address depends"),
        ("movq 768(%rdi), %r8; callq *%r8", "a call goes to a computed address"),
        ("movabsq $multiply, %rax; callq *%rax; movq (%rax), %r8", "an address depends"),
        ("vpgatherqq (%rdi,%zmm1,8), %zmm2 {%k1}", "an address depends"),
        ("vpermq %zmm0, %zmm1, %zmm2", "not known to take the same time"),
        ("vpermi2q %zmm0, %zmm1, %zmm2", "not known to take the same time"),
        ("vmovdqa64 (%rdi), %zmm2 {%k1}", "a mask register chooses"),
        ("divq %r8", "not known to take the same time"),
        ("movq 768(%rdi), %r8; movb $0, %r8b; movq (%rdi,%r8), %r9", "an address depends"),
        ("movq 768(%rdi), %r8; xorb %r8b, %r8b; movq (%rdi,%r8), %r9", "an address depends"),
        ("movq 768(%rdi), %r8; cmpq $7, %r8; incq %rdi; jb .LBB1_1", "a jump depends"),
        ("movq 768(%rdi), %r8; cmpq $7, %r8; shlq $0, %rdi; jb .LBB1_1", "a jump depends"),
        ("movq %rdi, %xmm0; vpaddq %xmm1, %xmm1, %xmm0; movq %xmm0, %r9; movq (%r9), %r9", "an address depends"),
        ("leaq 16(%rsp), %r8", "an address of the stack is taken"),
        ("movq %rsp, %r8", "an address of the stack is taken"),
    ):
        with subtests.test(planted=planted):
            lines = [line.strip().replace(" ", "\t", 1) for line in planted.split(";")]
            with pytest.raises(Leak, match=says) as leak:
                require_constant_time(_with(right, lines))
            assert str(leak.value).endswith(lines[-1])


def test_what_depends_on_arguments_and_counters_alone_is_no_leak(right: str) -> None:
    lines = ["movq\t%rdi, %r8", "movq\t%r8, 24(%rsp)", "movq\t24(%rsp), %r9", "movq\t8(%r9,%r8), %r9", "cmpq\t$3, %r8"]
    require_constant_time(_with(right, [*lines, "jb\t.LBB1_1"]))


def _with(assembly: str, lines: list[str]) -> str:
    """Return a program with more lines where the ladder's loop begins."""
    begins = assembly.index("\n", assembly.index(".LBB1_1:")) + 1
    return assembly[:begins] + "".join(f"\t{line}\n" for line in lines) + assembly[begins:]


def _jumps(code: Instructions, table: ir.Value, secret: ir.Value) -> None:
    """As a ladder that changes its points only where a bit says so."""
    with code.builder.if_then(code.builder.icmp_unsigned("==", secret, ir.Constant(I64, 1))):
        code.builder.store(secret, code.builder.gep(table, [ir.Constant(I64, 5)], source_etype=I64))


def _looks_up(code: Instructions, table: ir.Value, secret: ir.Value) -> None:
    """As a table of multiples that a part of the scalar chooses of."""
    found = code.builder.load(code.builder.gep(table, [secret], source_etype=I64), typ=I64)
    code.builder.store(found, table)


def _divides(code: Instructions, table: ir.Value, secret: ir.Value) -> None:
    code.builder.store(code.builder.udiv(ir.Constant(I64, 1 << 60), secret), table)


def test_leaks_of_a_generator_are_found(subtests: pytest.Subtests) -> None:
    for leak in (_jumps, _looks_up, _divides):
        with subtests.test(leak=leak):
            made = ir.Module("leaks")
            builder, (table,) = function(made, "leaks", [POINTER])
            leak(Instructions(builder), table, builder.load(table, typ=I64))
            builder.ret_void()
            with pytest.raises(Leak):
                require_constant_time(assembly_of(made))
