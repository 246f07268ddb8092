"""Kernel names are taken apart as compilers put them together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfcompare.compare.matching.kernel_names import KernelName, canonical_kernel, is_instruction, kernel_name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Im2Col", ("", "Im2Col", "", "")),
        ("void ns::f<int, g<float> >(float const*, int)", ("void", "ns::f", "<int, g<float> >", "(float const*, int)")),
        ("void (anonymous namespace)::f(int)", ("void", "(anonymous namespace)::f", "", "(int)")),
        ("f<8>(int) const", ("", "f", "<8>", "(int)")),
        ("std::pair<int, int> make<3>(int) [clone .kd]", ("std::pair<int, int>", "make", "<3>", "(int)")),
        ("void k<S::operator<(int)>(int)", ("void", "k", "<S::operator<(int)>", "(int)")),
        ("Cijk_Ailk_Bljk_MT64x64.kd", ("", "Cijk_Ailk_Bljk_MT64x64", "", "")),
        ("broken<(", ("", "broken<(", "", "")),
        ("", ("", "", "", "")),
        ("()", ("", "()", "", "")),
    ],
)
def test_the_parts_of_a_name(name: str, parts: tuple[str, str, str, str]) -> None:
    assert kernel_name(name) == KernelName(*parts)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void ns::f<int>(float*)", "ns::f<int>(float*, long)"),
        ("input_transpose_fusion_1", "input_transpose_fusion"),
        ("fusion.12", "fusion_3"),
        ("Cijk_MT64.kd", "Cijk_MT64"),
    ],
)
def test_another_spelling_of_one_kernel_has_the_same_canonical_name(one: str, other: str) -> None:
    assert canonical_kernel(one) == canonical_kernel(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void gemm<128, 64>(float*)", "void gemm<64, 64>(float*)"),
        ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nt"),
        ("maxwell_scudnn_128x32_3", "maxwell_scudnn_128x32_4"),
    ],
)
def test_variants_of_a_kernel_stay_apart(one: str, other: str) -> None:
    assert canonical_kernel(one) != canonical_kernel(other)


@pytest.mark.parametrize(
    "name", ["fusion_3", "loop_add_fusion", "gemm_fusion_dot_50", "triton_softmax_34", "wrapped_add"]
)
def test_kernels_that_xla_names_after_instructions(name: str) -> None:
    assert is_instruction(name)


@pytest.mark.parametrize("name", ["void fusion_3<int>(float*)", "maxwell_scudnn_128x32_3", "Cijk_MT64x64", "redzone"])
def test_kernels_whose_name_is_the_same_in_every_program(name: str) -> None:
    assert not is_instruction(name)


@given(st.text(alphabet="ab<>(){}[]:: ->,*", max_size=60))
def test_any_text_has_parts_that_hold_all_but_its_spaces_and_suffixes(name: str) -> None:
    parts = kernel_name(name)
    assert "".join(parts).replace(" ", "") == name.replace(" ", "")
