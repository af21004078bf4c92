/* demangle_test.c: mangled names, short names, and names that are meant to hurt. */
#include "base/demangle/demangle.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct mem mem;

static void check(struct str in, bool (*make)(struct str, struct buf *), const char *expected)
{
	struct buf out;

	buf_init(&out, &mem);
	assert_true(make(in, &out));
	assert_string_equal(buf_cstr(&out), expected);
	buf_release(&out);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static bool shorten(struct str in, struct buf *out)
{
	kernel_short_name(in, out);
	return !out->failed;
}

static const struct {
	const char *mangled, *expected;
} names[] = {
	{ "_Z3foov", "foo()" },
	{ "_Z3fooi.isra.0", "foo(int)" },
	{ "_ZN2at6native3fooEPKfRS1_", "at::native::foo(float const*, float const&)" },
	{ "_ZNK3Foo3barEv", "Foo::bar() const" },
	{ "_ZN3FooC1Ev", "Foo::Foo()" },
	{ "_ZN3FooD2Ev", "Foo::~Foo()" },
	{ "_ZNSaIwEC2Ev", "std::allocator<wchar_t>::allocator()" },
	{ "_Z3addIfEvPT_S1_", "void add<float>(float*, float*)" },
	{ "_Z1fILi4ELj7ELb1ELln3EEvv", "void f<4, 7u, true, -3l>()" },
	{ "_Z1fIJidEEvDpT_", "void f<int, double>(int, double)" },
	{ "_Z1fIJEEvDpT_", "void f<>()" },
	{ "_Z1fPFivE", "f(int (*)())" },
	{ "_Z1fRA3_i", "f(int (&) [3])" },
	{ "_Z1fM3FooKFivE", "f(int (Foo::*)() const)" },
	{ "_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()" },
	{ "_ZZ4mainENKUlifE_clEif", "main::{lambda(int, float)#1}::operator()(int, float) const" },
	{ "_ZN1AcvbEv", "A::operator bool()" },
	{ "_ZdlPv", "operator delete(void*)" },
	{ "_ZN1AnaEm", "A::operator new[](unsigned long)" },
	{ "_ZN1AplERKS_", "A::operator+(A const&)" },
	{ "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
	  "std::basic_ostream<char, std::char_traits<char>>& std::operator<< "
	  "<std::char_traits<char>>("
	  "std::basic_ostream<char, std::char_traits<char>>&, char const*)" },
	{ "_ZN8internal5gemvx6kernelIiLb0EEENSt9enable_ifIXntT0_EvE4typeET_",
	  "std::enable_if<!false, void>::type internal::gemvx::kernel<int, false>(int)" },
	{ "_ZTV3Foo", "vtable for Foo" },
	{ "_Z1fIJiRKdEEvDpOT_", "void f<int, double const&>(int&&, double const&)" },
	{ "_Z1fIJEEvDpOT_", "void f<>()" },
	{ "_Z1fIRiEvOT_", "void f<int&>(int&)" },
	{ "_Z1fIOiEvOT_RS1_", "void f<int&&>(int&&, int&)" },
	{ "_ZThn16_N3FooD1Ev", "non-virtual thunk to Foo::~Foo()" },
	{ "_ZTv0_n24_N3Foo3barEi", "virtual thunk to Foo::bar(int)" },
	{ "_ZZ1fIiEbT_ENKUlvE_clEv", "f<int>(int)::{lambda()#1}::operator()() const" },
	/* Rust: legacy names without their hash */
	{ "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write" },
	{ "_ZN4core3fmt5write17h0123456789abcdefE.llvm.42", "core::fmt::write" },
	{ "_ZN50_$LT$T$u20$as$u20$core..convert..From$LT$T$GT$$GT$4from17h0123456789abcdefE",
	  "<T as core::convert::From<T>>::from" },
	{ "_ZN1a3b$C17h0123456789abcdefE", "a::b$C::h0123456789abcdef" },
	/* v0: paths, generic arguments, references */
	{ "_RNvC1a1b", "a::b" },
	{ "_RNvCs1_1a1b", "a::b" },
	{ "_RNvNtC1a1b1c.llvm.123", "a::b::c" },
	{ "_RNvC6_123foo3bar", "123foo::bar" },
	{ "_RNCNvC1a1b0", "a::b::{closure#0}" },
	{ "_RNCNvC1a1bs_0", "a::b::{closure#1}" },
	{ "_RNSNvC1a1b6vtable", "a::b::{shim:vtable#0}" },
	{ "_RINvC1a1bhE", "a::b::<u8>" },
	{ "_RINvC1a1bhEC1z", "a::b::<u8>" },
	{ "_RINvC1a1bINtB2_1VlEE", "a::b::<a::V<i32>>" },
	{ "_RNvMC1aNtB2_1T1f", "<a::T>::f" },
	{ "_RNvXC1aNtB2_1TNtB2_1U1f", "<a::T as a::U>::f" },
	{ "_RNvYhNtC1a1U1f", "<u8 as a::U>::f" },
	/* v0: types */
	{ "_RINvC1a1bRShQeTETjETabEE", "a::b::<&[u8], &mut str, (), (usize,), (i8, bool)>" },
	{ "_RINvC1a1bPuOzAhj3_E", "a::b::<*const (), *mut !, [u8; 3]>" },
	{ "_RINvC1a1bFUKChEuFK9rust_calllEzE",
	  "a::b::<unsafe extern \"C\" fn(u8), extern \"rust-call\" fn(i32) -> !>" },
	{ "_RINvC1a1bFG_RL0_hEuE", "a::b::<for<'a> fn(&'a u8)>" },
	{ "_RINvC1a1bDG_INtC1c2FnTRL0_hEEp6OutputtNtC1c4SendEL_E",
	  "a::b::<dyn for<'a> c::Fn<(&'a u8,), Output = u16> + c::Send>" },
	{ "_RINvC1a1bL_E", "a::b::<'_>" },
	/* v0: constants and names that are not ASCII */
	{ "_RINvC1a1bKj1f_Kln5_Kb1_Kc78_KpE", "a::b::<31, -5, true, 'x', _>" },
	{ "_RINvC1a1bKca_Kc27_Kc7_E", "a::b::<'\\n', '\\'', '\\u{7}'>" },
	{ "_RINvC1a1bKnn80000000000000000000000000000000_E",
	  "a::b::<-0x80000000000000000000000000000000>" },
	{ "_RNvC1au9Gre_6ka8l", "a::Gr\xc3\xbc\xc3\x9f"
				"e" },
	{ "_RNvC1au3zca", "a::\xc3\x9f" },
	{ "_Z1fDF16_U3AS1i", "f(_Float16, int)" },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		check(str_from(names[i].mangled), demangle_name, names[i].expected);
}

static void test_no_names(void **state)
{
	static const char *const texts[] = { "",
					     "_Z",
					     "foo",
					     "_Z3fo",
					     "_Z999999f",
					     "_ZN3fooE_",
					     "_ZS_",
					     "_ZNS0_E",
					     "_Z1fIE3",
					     "_Z1fDTclE",
					     "_Z1fILiE",
					     "_ZL",
					     "_Z1fU",
					     "_ZN",
					     "_Z4294967297f",
					     "_R",
					     "_RN",
					     "_R1NvC1a1b",
					     "_RNvC1a1",
					     "_RNvC1a2b",
					     "_RNvB_1b",
					     "_RNvB9_1b",
					     "_RINvC1a1bB_E",
					     "_RINvC1a1bKj",
					     "_RINvC1a1bKf0_E",
					     "_RINvC1a1bKb2_E",
					     "_RINvC1a1bL5_E",
					     "_RINvC1a1bDE",
					     "_RNvC1au3z-c",
					     "_RNvC1au9_999999999",
					     "_RNvC1a1b!",
					     "_RINvC1a1bGzzzzzzzzzzzzzz_E" };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		struct buf out;

		buf_init(&out, &mem);
		buf_puts(&out, "kept");
		assert_false(demangle_name(str_from(texts[i]), &out));
		assert_string_equal(buf_cstr(&out), "kept");
		buf_release(&out);
	}
}

static void put_repeat(struct buf *to, const char *text, int times)
{
	while (times--)
		buf_puts(to, text);
}

/* Deep nesting, doubling by reference, empty packs that double: all end soon, and unread. */
static void test_hostile(void **state)
{
	struct buf in, out;

	(void)state;
	buf_init(&in, &mem);
	buf_init(&out, &mem);
	buf_puts(&in, "_Z1f");
	put_repeat(&in, "P", 10000);
	buf_puts(&in, "i");
	assert_false(demangle_name(buf_str(&in), &out));

	buf_clear(&in);
	buf_puts(&in, "_RINvC1a1b");
	put_repeat(&in, "R", 10000);
	buf_puts(&in, "hE");
	assert_false(demangle_name(buf_str(&in), &out));

	/* Rust: each tuple refers twice to the one before */
	buf_clear(&in);
	buf_puts(&in, "_RINvC1a1bThhE");
	for (size_t i = 0, before = 8; i < 40; i++) {
		static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz"
					     "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
		char ref[16];

		snprintf(ref, sizeof(ref), "B%c%c_", digits[(before - 1) / 62],
			 digits[(before - 1) % 62]);
		before = in.len - 2;
		buf_puts(&in, "T");
		put_repeat(&in, ref, 2);
		buf_puts(&in, "E");
	}
	buf_puts(&in, "E");
	assert_false(demangle_name(buf_str(&in), &out));
	assert_true(out.len < 100000);

	buf_clear(&in);
	buf_puts(&in, "_Z1f1A1BIS_S_E");
	for (int i = 1; i < 60; i++) {
		char ref[16];

		snprintf(ref, sizeof(ref), "S%c_", i < 10 ? '0' + i : 'A' + i - 10);
		buf_puts(&in, "1BI");
		put_repeat(&in, i < 36 ? ref : "S0_", 2);
		buf_puts(&in, "E");
	}
	demangle_name(buf_str(&in), &out);
	assert_true(out.len < 100000);

	buf_clear(&in);
	buf_puts(&in, "_Z1fIJE");
	for (int i = 0; i < 60; i++) {
		char ref[16];

		snprintf(ref, sizeof(ref), i ? "T%d_" : "T_", i - 1);
		buf_puts(&in, "J");
		put_repeat(&in, ref, 2);
		buf_puts(&in, "E");
	}
	buf_puts(&in, "Evv");
	assert_false(demangle_name(buf_str(&in), &out));
	buf_release(&in);
	buf_release(&out);
}

static void test_short(void **state)
{
	static const struct {
		const char *name, *expected;
	} kernels[] = {
		{ "volta_sgemm_64x64_tn", "volta_sgemm_64x64_tn" },
		{ "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)" },
		{ "a text of words", "a text of words" },
		{ "void foo(int)", "foo" },
		{ "void at::native::(anonymous namespace)::copy<float>(float*)",
		  "at::native::copy<float>" },
		{ "void at::native::vectorized_elementwise_kernel<4, "
		  "at::native::FillFunctor<c10::Half>, "
		  "at::detail::Array<char*, 1> >(int, at::native::FillFunctor<c10::Half>)",
		  "at::native::vectorized_elementwise_kernel<4, FillFunctor, …>" },
		{ "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<"
		  "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::"
		  "operator()() "
		  "const::{lambda(float)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>"
		  "(int)",
		  "at::native::elementwise_kernel<128, 2, direct_copy_kernel_cuda>" },
		{ "void cub::A<int, float>::run<7>(int)", "cub::A<…>::run<7>" },
		{ "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, 3>(int)",
		  "internal::gemvx::kernel<int, 3>" },
		{ "main::{lambda(int)#1}::operator()(int) const",
		  "main::{lambda(int)#1}::operator()" },
		{ "_Z3addIfEvPT_S1_", "add<float>" },
		{ "_ZN2at3addIfEEvPT_.kd", "at::add<float>" },
		{ "void f<(a)0>(int)", "f<…>" },
		{ "a<", "a<>" },
		{ "f(", "f" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(kernels); i++)
		check(str_from(kernels[i].name), shorten, kernels[i].expected);
}

static void test_no_memory(void **state)
{
	struct str name = STR("_ZN2at6native3addIfN3FooIiEEEEvPT_T0_S2_S3_");

	(void)state;
	for (uint64_t n = 1; n < 50; n++) {
		struct buf out;

		buf_init(&out, &mem);
		mem_fail_after(n, false);
		kernel_short_name(name, &out);
		mem_fail_after(0, false);
		assert_true(out.failed ||
			    str_eq(buf_str(&out), STR("at::native::add<float, Foo>")));
		buf_release(&out);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	  cmocka_unit_test(test_no_names),
		cmocka_unit_test(test_hostile),	  cmocka_unit_test(test_short),
		cmocka_unit_test(test_no_memory),
	};

	mem_init(&mem, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
