/* demangle_test.c: mangled names, short names, and names that are meant to hurt. */
#include "base/demangle.h"

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
	static const char *const texts[] = { "",	  "_Z",	       "foo",	       "_Z3fo",
					     "_Z999999f", "_ZN3fooE_", "_ZS_",	       "_ZNS0_E",
					     "_Z1fIE3",	  "_Z1fDTclE", "_Z1fILiE",     "_ZL",
					     "_Z1fU",	  "_ZN",       "_Z4294967297f" };

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
