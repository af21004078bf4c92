/*
 * pbtxt_test.c: every point of the text grammar, right and wrong, against what is expected and (if
 * protoc is installed) against protoc; long and hostile texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "base/temp_file.h"
#include "wire/protobuf/pb.h"
#include "wire/protobuf/pbtxt.h"

/* ---- a message type with everything in it ------------------------------------------------------ */

static const char proto_file[] =
	"syntax = 'proto3';\n"
	"enum E { Z = 0; A = 1; B = -2; }\n"
	"message S { string name = 1; int32 n = 2; S sub = 3; }\n"
	"message T {\n"
	"  int32 i32 = 1; int64 i64 = 2; uint32 u32 = 3; uint64 u64 = 4; float f = 5;\n"
	"  double d = 6; bool b = 7; string s = 8; bytes y = 9; E e = 10; S m = 11;\n"
	"  repeated int32 ri = 12; repeated string rs = 13; repeated S rm = 14;\n"
	"  map<string, S> ms = 15; map<int64, string> mi = 16;\n"
	"  oneof o { string os = 17; S om = 18; int32 oi = 19; }\n"
	"  repeated float rf = 20; repeated E re = 21; fixed32 x32 = 22; fixed64 x64 = 23;\n"
	"  repeated bool rb = 24; sint64 z64 = 25; repeated bytes ry = 26; T t = 27;\n"
	"}\n";

static const struct pb_message S, T;

static const struct pb_enum_value e_values[] = { { "Z", 0 }, { "A", 1 }, { "B", -2 } };
static const struct pb_enum e_enum = { e_values, ARRAY_COUNT(e_values) };

static const struct pb_field_desc s_fields[] = {
	PB_FIELD(1, name, STRING, 0, 0),
	PB_FIELD(2, n, INT32, 0, 0),
	PB_FIELD_MESSAGE(3, sub, S, 0, 0),
};
static const struct pb_message S = { "S", s_fields, ARRAY_COUNT(s_fields), false };

static const struct pb_field_desc ms_fields[] = {
	PB_FIELD(1, key, STRING, 0, 0),
	PB_FIELD_MESSAGE(2, value, S, 0, 0),
};
static const struct pb_message ms = { "MsEntry", ms_fields, ARRAY_COUNT(ms_fields), false };

static const struct pb_field_desc mi_fields[] = {
	PB_FIELD(1, key, INT64, 0, 0),
	PB_FIELD(2, value, STRING, 0, 0),
};
static const struct pb_message mi = { "MiEntry", mi_fields, ARRAY_COUNT(mi_fields), false };

static const struct pb_field_desc t_fields[] = {
	PB_FIELD(1, i32, INT32, 0, 0),
	PB_FIELD(2, i64, INT64, 0, 0),
	PB_FIELD(3, u32, UINT32, 0, 0),
	PB_FIELD(4, u64, UINT64, 0, 0),
	PB_FIELD(5, f, FLOAT, 0, 0),
	PB_FIELD(6, d, DOUBLE, 0, 0),
	PB_FIELD(7, b, BOOL, 0, 0),
	PB_FIELD(8, s, STRING, 0, 0),
	PB_FIELD(9, y, BYTES, 0, 0),
	PB_FIELD_ENUM(10, e, e_enum, 0, 0),
	PB_FIELD_MESSAGE(11, m, S, 0, 0),
	PB_FIELD(12, ri, INT32, PBF_REPEATED, 0),
	PB_FIELD(13, rs, STRING, PBF_REPEATED, 0),
	PB_FIELD_MESSAGE(14, rm, S, PBF_REPEATED | PBF_RECORD, 0),
	PB_FIELD_MESSAGE(15, ms, ms, PBF_REPEATED, 0),
	PB_FIELD_MESSAGE(16, mi, mi, PBF_REPEATED, 0),
	PB_FIELD(17, os, STRING, 0, 1),
	PB_FIELD_MESSAGE(18, om, S, 0, 1),
	PB_FIELD(19, oi, INT32, 0, 1),
	PB_FIELD(20, rf, FLOAT, PBF_REPEATED, 0),
	PB_FIELD_ENUM(21, re, e_enum, PBF_REPEATED, 0),
	PB_FIELD(22, x32, FIXED32, 0, 0),
	PB_FIELD(23, x64, FIXED64, 0, 0),
	PB_FIELD(24, rb, BOOL, PBF_REPEATED, 0),
	PB_FIELD(25, z64, SINT64, 0, 0),
	PB_FIELD(26, ry, BYTES, PBF_REPEATED, 0),
	PB_FIELD_MESSAGE(27, t, T, 0, 0),
};
static const struct pb_message T = { "T", t_fields, ARRAY_COUNT(t_fields), false };

/* ---- from binary to a short text, by other means ----------------------------------------------- */

static void show_value(struct buf *out, const struct pb_field_desc *field,
		       const struct pb_field *f);

static const struct pb_field_desc *field_of(const struct pb_message *type, uint32_t number)
{
	for (size_t i = 0; i < type->count; i++)
		if (type->fields[i].number == number)
			return &type->fields[i];
	return NULL;
}

/* "i32=5 m{name=x} ": fields in wire order. Recursion is as deep as the test's own texts. */
static void show_message(struct buf *out, const struct pb_message *type, const void *ptr,
			 size_t len)
{
	struct pb r = pb_over(ptr, len);
	struct pb_field f;

	while (pb_next(&r, &f)) {
		const struct pb_field_desc *field = field_of(type, pb_number(&f));

		assert_non_null(field);
		buf_puts(out, field->name);
		show_value(out, field, &f);
		buf_puts(out, " ");
	}
	assert_int_equal(r.problem, PB_OK);
}

static void show_value(struct buf *out, const struct pb_field_desc *field, const struct pb_field *f)
{
	switch (field->type) {
	case PBT_MESSAGE:
		assert_int_equal(f->tag & 7, PB_BYTES);
		buf_puts(out, "{");
		show_message(out, field->message, f->ptr, (size_t)f->value);
		buf_puts(out, "}");
		break;
	case PBT_STRING:
	case PBT_BYTES:
		assert_int_equal(f->tag & 7, PB_BYTES);
		buf_puts(out, "=");
		for (size_t i = 0; i < f->value; i++)
			if (f->ptr[i] >= ' ' && f->ptr[i] < 0x7f)
				buf_add_char(out, (char)f->ptr[i]);
			else
				buf_printf(out, "<%02x>", f->ptr[i]);
		break;
	case PBT_FLOAT:
		assert_int_equal(f->tag & 7, PB_FIXED32);
		buf_printf(out, "=%.9g", (double)pb_float(f->value));
		break;
	case PBT_DOUBLE:
		assert_int_equal(f->tag & 7, PB_FIXED64);
		buf_printf(out, "=%.17g", pb_double(f->value));
		break;
	case PBT_UINT64:
	case PBT_FIXED64:
		buf_printf(out, "=%" PRIu64, f->value);
		break;
	default:
		buf_printf(out, "=%" PRId64, (int64_t)f->value);
		break;
	}
}

/* ---- the grammar -------------------------------------------------------------------------------- */

static const struct {
	const char *text, *want;
} good_cases[] = {
	{ "", "" },
	{ " \t\r\n\v\f # nothing here", "" },
	{ "# comment \"{\ni32: 5 # another\n#", "i32=5 " },
	/* integers */
	{ "i32: 0x10", "i32=16 " },
	{ "i32: 0XfF", "i32=255 " },
	{ "i32: 010", "i32=8 " },
	{ "i32: 0", "" },
	{ "i32: -0", "" },
	{ "i32: - 5", "i32=-5 " },
	{ "i32:-2147483648", "i32=-2147483648 " },
	{ "i32: 2147483647", "i32=2147483647 " },
	{ "i64: 9223372036854775807", "i64=9223372036854775807 " },
	{ "i64: -9223372036854775808", "i64=-9223372036854775808 " },
	{ "i64: -0x10", "i64=-16 " },
	{ "u32: 4294967295", "u32=4294967295 " },
	{ "u64: 18446744073709551615", "u64=18446744073709551615 " },
	{ "u64: 0xffffffffffffffff", "u64=18446744073709551615 " },
	{ "u64: 01777777777777777777777", "u64=18446744073709551615 " },
	{ "x32: 7 x64: 8", "x32=7 x64=8 " },
	{ "z64: -3", "z64=5 " },
	{ "z64: 3", "z64=6 " },
	/* floats */
	{ "f: 1", "f=1 " },
	{ "f: 1f", "f=1 " },
	{ "f: 1.5F", "f=1.5 " },
	{ "f: .5", "f=0.5 " },
	{ "f: 5.", "f=5 " },
	{ "f: 1e3", "f=1000 " },
	{ "f: 1.25E-2f", "f=0.0125000002 " },
	{ "f: 1.e+5", "f=100000 " },
	{ "f: - 5", "f=-5 " },
	{ "f: inf", "f=inf " },
	{ "f: -Infinity", "f=-inf " },
	{ "f: NaN", "f=nan " },
	{ "f: 1e400", "f=inf " },
	{ "d: 0.1", "d=0.10000000000000001 " },
	{ "d: 3.14159265358979323846264338327950288", "d=3.1415926535897931 " },
	{ "d: 1.7976931348623157e308", "d=1.7976931348623157e+308 " },
	{ "d: 4.9e-324", "d=4.9406564584124654e-324 " },
	{ "d: 18446744073709551616", "d=1.8446744073709552e+19 " },
	{ "d: 9007199254740993", "d=9007199254740992 " },
	{ "d: 123456789012345e-22", "d=1.23456789012345e-08 " },
	{ "d: 1e-400", "" },
	{ "d: 0.0", "" },
	{ "d: -0.0", "d=-0 " },
	/* booleans and enums */
	{ "b: true", "b=1 " },
	{ "b: True", "b=1 " },
	{ "b: t", "b=1 " },
	{ "b: 1", "b=1 " },
	{ "b: 0x1", "b=1 " },
	{ "b: false", "" },
	{ "rb: [true, 0, False, f]", "rb=1 rb=0 rb=0 rb=0 " },
	{ "e: A", "e=1 " },
	{ "e: B", "e=-2 " },
	{ "e: 7", "e=7 " },
	{ "e: -1", "e=-1 " },
	{ "e: Z", "" },
	{ "re: A re: 0 re: [Z, B]", "re=1 re=0 re=0 re=-2 " },
	/* strings */
	{ "s: \"abc\"", "s=abc " },
	{ "s: 'a\"b'", "s=a\"b " },
	{ "s: \"a'b\"", "s=a'b " },
	{ "s: \"a\" 'b'\n\t\"c\" # x\n 'd'", "s=abcd " },
	{ "s: \"\"", "" },
	{ "s: \"\" ''", "" },
	{ "os: \"\"", "os= " },
	{ "rs: \"\" rs: 'x'", "rs= rs=x " },
	{ "rs: ['a' \"b\", 'c']", "rs=ab rs=c " },
	{ "y: \"\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\'\\\"\"", "y=<07><08><0c><0a><0d><09><0b>\\?'\" " },
	{ "y: \"\\0\\12\\1234\\400\"", "y=<00><0a>S4<00> " },
	{ "y: \"\\x4\\x41\\x414\"", "y=<04>AA4 " },
	{ "s: \"\\u00e9\\U0001F600\\u0041\"", "s=<c3><a9><f0><9f><98><80>A " },
	{ "s: \"\\ud83d\\ude00\"", "s=<f0><9f><98><80> " },
	{ "s: \"\x01\t\x7f\"", "s=<01><09><7f> " },
	{ "y: \"\xff\"", "y=<ff> " },
	{ "s: \"# { [\"", "s=# { [ " },
	/* messages */
	{ "m {}", "m{} " },
	{ "m: {}", "m{} " },
	{ "m <>", "m{} " },
	{ "m: <name: \"x\">;", "m{name=x } " },
	{ "m{name:'x'n:1}", "m{name=x n=1 } " },
	{ "m { sub { sub <n: 4> } n: 5 }", "m{sub{sub{n=4 } } n=5 } " },
	{ "rm {} , rm {};rm{}", "rm{} rm{} rm{} " },
	{ "rm: [{name:\"a\"},<name:\"b\">]", "rm{name=a } rm{name=b } " },
	{ "rm [ { n: 1 } ] , i32: 1", "rm{n=1 } i32=1 " },
	{ "rm: [] i32: 1", "i32=1 " },
	{ "t { rm: [ { sub { n: 1 } }, {} ], ri: [1] }", "t{rm{sub{n=1 } } rm{} ri=1 } " },
	{ "ms { key: \"a\" value { name: \"x\" } }", "ms{key=a value{name=x } } " },
	{ "ms { value { } }", "ms{value{} } " },
	{ "ms: [{key:\"a\"},{key:\"a\"}]", "ms{key=a } ms{key=a } " },
	{ "mi { value: 'v' key: -5 }", "mi{value=v key=-5 } " },
	{ "om { n: 0 }", "om{} " },
	{ "oi: 0", "oi=0 " },
	/* lists and separators */
	{ "ri: [1,2 , 3]", "ri=1 ri=2 ri=3 " },
	{ "ri: []", "" },
	{ "ri: 1 ri: [2,3] ri: 0", "ri=1 ri=2 ri=3 ri=0 " },
	{ "rf: [1, 2.5, -inf]", "rf=1 rf=2.5 rf=-inf " },
	{ "i32: 1,s:\"x\";y:\"z\"", "i32=1 s=x y=z " },
	{ "s:\"x\"i32:1", "s=x i32=1 " },
	{ "i32: 5#x\n;s:'a'", "i32=5 s=a " },
};

static const struct {
	const char *text;
	unsigned line, column; /* 0 = not checked */
	const char *say;
} bad_cases[] = {
	{ "x: 1", 1, 1, "T has no field 'x'" },
	{ "I32: 1", 1, 1, "no field 'I32'" },
	{ "m {\n  nome: 'x' }", 2, 3, "S has no field 'nome'" },
	{ "i32: 1 i32: 2", 1, 8, "i32 appears twice in the same T" },
	{ "m {} m {}", 1, 6, "appears twice" },
	{ "ms { key: 'a' key: 'b' }", 1, 15, "appears twice" },
	{ "os: 'a' oi: 5", 1, 9, "oi and os are both set" },
	{ "os: 'a' os: 'b'", 1, 9, "appears twice" },
	{ "om {} om {}", 1, 7, "appears twice" },
	/* types */
	{ "i32: \"1\"", 1, 6, "an integer expected, but found '\"'" },
	{ "i32: 1.0", 1, 6, "an integer expected, but found '1.0'" },
	{ "i32: 1e3", 1, 6, "an integer expected" },
	{ "i32: 1f", 1, 6, "an integer expected" },
	{ "i32: true", 1, 6, "an integer expected, but found 'true'" },
	{ "i32: +5", 1, 6, "an integer expected" },
	{ "i32: [1]", 1, 6, "an integer expected" },
	{ "i32:", 1, 5, "an integer expected, but the text ends" },
	{ "u32: -1", 1, 6, "not negative" },
	{ "u32: -0", 1, 6, "not negative" },
	{ "s: 5", 1, 4, "a quoted string expected" },
	{ "s: x", 1, 4, "a quoted string expected, but found 'x'" },
	{ "e: \"A\"", 1, 4, "a name or number" },
	{ "e: NOPE", 1, 4, "'NOPE' is not a value of e" },
	{ "e: a", 1, 4, "is not a value" },
	{ "e: 99999999999", 1, 4, "out of range" },
	{ "b: TRUE", 1, 4, "true or false" },
	{ "b: 2", 1, 4, "out of range" },
	{ "b: -1", 1, 4, "true or false" },
	{ "m: 5", 1, 4, "'{' expected" },
	{ "m: [{}]", 1, 4, "'{' expected" },
	{ "f: 0x10", 1, 4, "a decimal number" },
	{ "f: 010", 1, 4, "a decimal number" },
	{ "f: inff", 1, 4, "a number expected" },
	{ "f: --5", 1, 5, "a number expected" },
	{ "f: .", 1, 4, "a number expected" },
	{ "f: 'x'", 1, 4, "a number expected" },
	/* ranges */
	{ "i32: 2147483648", 1, 6, "2147483648 is out of range" },
	{ "i32: -2147483649", 1, 7, "-2147483649 is out of range" },
	{ "i64: 9223372036854775808", 1, 6, "out of range" },
	{ "u32: 4294967296", 1, 6, "out of range" },
	{ "u64: 18446744073709551616", 1, 6, "out of range" },
	{ "u64: 0xffffffffffffffffff", 1, 6, "out of range" },
	/* numbers */
	{ "i32: 08", 1, 0, "octal" },
	{ "i32: 0x", 1, 0, "hexadecimal" },
	{ "i32: 1foo", 1, 0, "blank" },
	{ "i32: 1s:'x'", 1, 0, "blank" },
	{ "f: 1e", 1, 0, "exponent" },
	{ "f: 1e+", 1, 0, "exponent" },
	{ "f: 1.5.2", 1, 0, "decimal point" },
	{ "f: 0x1.2", 1, 0, "decimal point" },
	/* strings */
	{ "s: \"abc", 1, 4, "is not closed" },
	{ "s: \"abc\\\"", 1, 4, "is not closed" },
	{ "s: 'a' 'b", 1, 8, "is not closed" },
	{ "s: \"a\nb\"", 1, 4, "not closed on its line" },
	{ "s: \"abc'", 1, 4, "is not closed" },
	{ "y: \"\\9\"", 1, 5, "escape" },
	{ "y: \"\\q\"", 1, 5, "escape" },
	{ "y: \"\\X41\"", 1, 5, "escape" },
	{ "y: \"\\xg\"", 1, 5, "escape" },
	{ "y: \"\\u12\"", 1, 5, "escape" },
	{ "y: \"ab\\", 1, 0, "escape" },
	/* structure */
	{ "m { name: 'x'", 1, 14, "ends inside a S that begins at byte 2" },
	{ "m {\n\n", 3, 1, "ends inside" },
	{ "m", 1, 2, "'{' expected, but the text ends" },
	{ "rm: [{}", 1, 8, "',' or ']' expected" },
	{ "rm: [{},]", 1, 9, "'{' expected" },
	{ "rm: [{}{}]", 1, 8, "',' or ']' expected" },
	{ "m { >", 1, 5, "a field or the end of the message expected" },
	{ "m < }", 1, 5, "a field or the end of the message expected" },
	{ "}", 1, 1, "a field expected, but found '}'" },
	{ "m { } }", 1, 7, "a field expected" },
	{ "ri: [1,]", 1, 8, "an integer expected" },
	{ "ri: [1 2]", 1, 8, "',' or ']' expected" },
	{ "ri: [1", 1, 7, "',' or ']' expected" },
	{ "ri: [[1]]", 1, 6, "an integer expected" },
	{ "ri [1]", 1, 4, "':' expected" },
	{ "i32 1", 1, 5, "':' expected" },
	{ "s \"x\"", 1, 3, "':' expected" },
	{ "i32 { }", 1, 5, "':' expected" },
	{ "i32: 1,,", 1, 8, "a field expected" },
	{ "i32: 1;;", 1, 8, "a field expected" },
	{ ",i32: 1", 1, 1, "a field expected" },
	{ "1: 5", 1, 1, "a field expected, but found '1'" },
	{ "i32: 5 // c", 1, 8, "a field expected" },
	{ "f: nan(5)", 1, 7, "a field expected" },
	{ "[foo.bar]: 1", 1, 1, "no extensions" },
	/* what is no text */
	{ "i32:5\x01", 1, 6, "the byte 0x01" },
	{ "\x7f", 1, 1, "the byte 0x7f" },
	{ "i32: \xc3\xa9", 1, 6, "the byte 0xc3" },
	{ "\n\x0a\x05\x08\x01", 3, 1, "the byte 0x05" },
};

static struct mem mem;

static int set_up(void **state)
{
	(void)state;
	mem_init(&mem, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return mem.used ? 1 : 0;
}

static void expect_text(const char *text, size_t len, const char *want)
{
	char *copy = malloc(len ? len : 1); /* exact, so that reading beyond it is seen */
	struct buf binary, printed;
	struct ow_error err;
	ow_status status;

	buf_init(&binary, &mem);
	buf_init(&printed, &mem);
	memcpy(copy, text, len);
	status = pbtxt_to_buf(str_make(copy, len), &T, &binary, &err);
	if (status != OW_OK)
		fail_msg("'%s': %s", text, err.text);
	show_message(&printed, &T, binary.ptr, binary.len);
	assert_string_equal(buf_cstr(&printed), want);
	buf_release(&binary);
	buf_release(&printed);
	free(copy);
}

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(good_cases); i++)
		expect_text(good_cases[i].text, strlen(good_cases[i].text), good_cases[i].want);
	/* a byte order mark, as some editors leave it: here protoc is stricter */
	expect_text("\xef\xbb\xbfi32: 1", 9, "i32=1 ");
}

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(bad_cases); i++) {
		size_t len = strlen(bad_cases[i].text);
		char *copy = malloc(len ? len : 1), where[32];
		struct ow_error err;
		struct buf out;

		buf_init(&out, &mem);
		memcpy(copy, bad_cases[i].text, len);
		assert_int_equal(pbtxt_to_buf(str_make(copy, len), &T, &out, &err), OW_E_CORRUPT);
		snprintf(where, sizeof(where),
			 bad_cases[i].column ? "text:%u:%u: " : "text:%u:", bad_cases[i].line,
			 bad_cases[i].column);
		if (!strstr(err.text, bad_cases[i].say) || !strstr(err.text, where) ||
		    !strstr(err.text, "(at byte "))
			fail_msg("'%s': %s (wanted %s%s)", bad_cases[i].text, err.text, where,
				 bad_cases[i].say);
		assert_true(err.offset <= len);
		assert_int_equal(out.len, 0);
		buf_release(&out);
		free(copy);
	}
	{ /* a zero byte, inside and outside of strings */
		struct ow_error err;
		struct buf out;

		buf_init(&out, &mem);
		assert_int_equal(pbtxt_to_buf(str_make("s:'a\0'", 6), &T, &out, &err),
				 OW_E_CORRUPT);
		assert_int_equal(pbtxt_to_buf(str_make("i32:1\0", 6), &T, &out, &err),
				 OW_E_CORRUPT);
		assert_non_null(strstr(err.text, "0x00"));
		buf_release(&out);
	}
}

/* ---- against protoc ----------------------------------------------------------------------------- */

static const char *work_dir;

static void write_file(const char *name, const void *data, size_t len)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", work_dir, name);
	file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	fclose(file);
}

static int run_protoc(const char *mode, const char *from, const char *to)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "cd %s && protoc --%s=T test.proto <%s >%s 2>/dev/null && protoc --decode=T "
		 "test.proto <%s >%s.txt 2>/dev/null",
		 work_dir, mode, from, to, to, to);
	return system(command);
}

/* Everything that we take protoc takes, with the same result, and the other way round. */
static void test_protoc(void **state)
{
	char dir[] = "/tmp/opwatch-pbtxt-XXXXXX", command[256];
	struct buf out;

	(void)state;
	if (system("protoc --version >/dev/null 2>&1") != 0) {
		print_message("protoc is not installed: not compared with it\n");
		skip();
	}
	work_dir = mkdtemp(dir);
	assert_non_null(work_dir);
	write_file("test.proto", proto_file, sizeof(proto_file) - 1);
	buf_init(&out, &mem);
	for (size_t i = 0; i < ARRAY_COUNT(good_cases); i++) {
		buf_clear(&out);
		assert_int_equal(pbtxt_to_buf(str_from(good_cases[i].text), &T, &out, NULL), OW_OK);
		write_file("in.txt", good_cases[i].text, strlen(good_cases[i].text));
		write_file("ours", out.ptr ? out.ptr : "", out.len);
		if (run_protoc("encode", "in.txt", "theirs") != 0)
			fail_msg("protoc refuses '%s'", good_cases[i].text);
		snprintf(command, sizeof(command),
			 "cd %s && protoc --decode=T test.proto <ours >ours.txt && "
			 "cmp -s ours.txt theirs.txt",
			 work_dir);
		if (system(command) != 0)
			fail_msg("protoc reads something else in '%s'", good_cases[i].text);
	}
	for (size_t i = 0; i < ARRAY_COUNT(bad_cases); i++) {
		write_file("in.txt", bad_cases[i].text, strlen(bad_cases[i].text));
		if (run_protoc("encode", "in.txt", "theirs") == 0)
			fail_msg("protoc takes '%s'", bad_cases[i].text);
	}
	buf_release(&out);
	snprintf(command, sizeof(command), "rm -r %s", work_dir);
	assert_int_equal(system(command), 0);
}

/* ---- long texts --------------------------------------------------------------------------------- */

static void put_long_text(struct buf *out, size_t records)
{
	for (size_t i = 0; i < records; i++) {
		buf_printf(out, "rm {\n  name: \"record %zu %.*s\"  # the number\n", i,
			   (int)(i * 7 % 150),
			   "................................................................"
			   "................................................................"
			   "......................");
		buf_printf(out, "%*ssub { n: %zu sub { name: %s } }\n}\n", (int)(i * 13 % 60), "",
			   i, i % 3 ? "'\\x41\\102\\303\\251'" : "'\\x41\\102' \"x\"");
	}
	buf_puts(out, "y: \"");
	for (size_t i = 0; i < records * 100; i++)
		buf_puts(out, i % 5 ? "\\001" : "a");
	buf_puts(out, "\"");
	buf_puts(out, "#");
	buf_add_repeat(out, 'c', records * 40);
	buf_puts(out, "\n");
	buf_add_repeat(out, ' ', records * 40);
	buf_puts(out, "i32: 7");
}

static ow_status convert(const struct input *in, const struct pb_message *type,
			 const struct pbtxt_options *options, struct buf *out,
			 struct pbtxt_result *result, struct ow_error *err)
{
	struct input binary;
	ow_status status = pbtxt_to_input(in, type, options, &binary, result, err);

	if (status != OW_OK)
		return status;
	if (buf_reserve(out, (size_t)binary.size + 1)) {
		assert_int_equal(input_read_at(&binary, 0, out->ptr, (size_t)binary.size, NULL),
				 OW_OK);
		out->len = (size_t)binary.size;
	}
	input_close(&binary);
	return OW_OK;
}

/* The same from memory and from a file, to memory and to a file. */
static void test_long(void **state)
{
	struct buf text, whole, out, printed[2];
	struct ow_error err = { 0 };
	struct input in, file;
	int fd = temp_file_open(NULL);

	(void)state;
	buf_init(&text, &mem);
	buf_init(&whole, &mem);
	buf_init(&out, &mem);
	buf_init(&printed[0], &mem);
	buf_init(&printed[1], &mem);
	put_long_text(&text, 20000);
	assert_true(text.len > 5 << 20);
	assert_int_equal(write(fd, text.ptr, text.len), (ssize_t)text.len);
	assert_int_equal(input_from_memory(&in, &mem, "text", text.ptr, text.len, NULL), OW_OK);
	assert_int_equal(input_adopt_fd(&file, &mem, "text", fd, NULL), OW_OK);
	if (convert(&in, &T, NULL, &whole, NULL, &err) != OW_OK)
		fail_msg("%s", err.text);
	assert_int_equal(convert(&file, &T, NULL, &out, NULL, &err), OW_OK);
	assert_int_equal(out.len, whole.len);
	assert_memory_equal(out.ptr, whole.ptr, whole.len);
	show_message(&printed[0], &T, whole.ptr, whole.len);
	for (size_t max = 100; max < 1 << 20; max *= 20) {
		struct pbtxt_options options = { .memory_max = max };

		assert_int_equal(convert(&file, &T, &options, &out, NULL, &err), OW_OK);
		assert_true(out.len >= whole.len);
		buf_clear(&printed[1]);
		show_message(&printed[1], &T, out.ptr, out.len);
		assert_int_equal(printed[1].len, printed[0].len);
		assert_memory_equal(printed[1].ptr, printed[0].ptr, printed[0].len);
	}
	input_close(&in);
	input_close(&file);
	buf_release(&text);
	buf_release(&whole);
	buf_release(&out);
	buf_release(&printed[0]);
	buf_release(&printed[1]);
}

/* Everything nested in one message that is longer than the buffer, and lengths patched in the file. */
static void test_spill_nested(void **state)
{
	struct pbtxt_options options = { .memory_max = 1000 };
	struct buf text, whole, out, printed[2];
	struct input in;

	(void)state;
	buf_init(&text, &mem);
	buf_init(&whole, &mem);
	buf_init(&out, &mem);
	buf_init(&printed[0], &mem);
	buf_init(&printed[1], &mem);
	buf_puts(&text, "t { s: 'before' t { t { t { ");
	put_long_text(&text, 15000);
	buf_puts(&text, " } s: 'x' } } ri: [1,2,3] }");
	assert_int_equal(input_from_memory(&in, &mem, "text", text.ptr, text.len, NULL), OW_OK);
	assert_int_equal(convert(&in, &T, NULL, &whole, NULL, NULL), OW_OK);
	assert_int_equal(convert(&in, &T, &options, &out, NULL, NULL), OW_OK);
	show_message(&printed[0], &T, whole.ptr, whole.len);
	show_message(&printed[1], &T, out.ptr, out.len);
	assert_int_equal(printed[1].len, printed[0].len);
	assert_memory_equal(printed[1].ptr, printed[0].ptr, printed[0].len);
	input_close(&in);
	buf_release(&text);
	buf_release(&whole);
	buf_release(&out);
	buf_release(&printed[0]);
	buf_release(&printed[1]);
}

static void test_depth(void **state)
{
	struct buf text, out;
	struct ow_error err;

	(void)state;
	buf_init(&text, &mem);
	buf_init(&out, &mem);
	for (int deep = PBTXT_DEPTH_MAX; deep <= PBTXT_DEPTH_MAX + 1; deep++) {
		ow_status want = deep > PBTXT_DEPTH_MAX ? OW_E_CORRUPT : OW_OK;

		buf_clear(&text);
		for (int i = 0; i < deep; i++)
			buf_puts(&text, "t{");
		for (int i = 0; i < deep; i++)
			buf_puts(&text, "}");
		assert_int_equal(pbtxt_to_buf(buf_str(&text), &T, &out, &err), want);
	}
	assert_non_null(strstr(err.text, "nested"));
	buf_clear(&text);
	for (int i = 0; i < 100000; i++)
		buf_puts(&text, "t<");
	assert_int_equal(pbtxt_to_buf(buf_str(&text), &T, &out, &err), OW_E_CORRUPT);
	buf_clear(&text);
	buf_add_repeat(&text, 'a', 10000);
	assert_int_equal(pbtxt_to_buf(buf_str(&text), &T, &out, &err), OW_E_CORRUPT);
	buf_clear(&text);
	buf_puts(&text, "d: 0.");
	buf_add_repeat(&text, '3', 3000);
	assert_int_equal(pbtxt_to_buf(buf_str(&text), &T, &out, &err), OW_OK);
	buf_release(&text);
	buf_release(&out);
}

/* ---- damage ------------------------------------------------------------------------------------- */

static const char sample[] = "i32: 5 m { name: 'x' }\n"
			     "rm { name: 'one' n: 1 sub { n: 2 } }\n"
			     "rm { name: 'two' n: 2 }\n"
			     "rm: [ { name: 'three' }, { name: 'four\\x41\\u00e9' } ]\n"
			     "t { s: 'inside' rm { n: 5 } rm { n: 6 } }\n"
			     "# end\nri: [1, 2, 3] d: -1.5e3 e: A mi { key: 1 value: 'v' }\n";

static size_t count_records(const struct buf *binary)
{
	struct pb r = pb_over(binary->ptr, binary->len);
	struct pb_field f;
	size_t count = 0;

	while (pb_next(&r, &f))
		count += pb_number(&f) == 14;
	assert_int_equal(r.problem, PB_OK);
	return count;
}

/* Cut anywhere: either whole, or an error; salvaged, the records that were whole. */
static void test_truncation(void **state)
{
	static const size_t ends[] = { 59, 83, 0, 0 };
	struct pbtxt_options options = { .salvage = true };
	struct pbtxt_result result;
	struct ow_error err;
	struct input in;
	struct buf out;

	(void)state;
	buf_init(&out, &mem);
	for (size_t len = 0; len <= sizeof(sample) - 1; len++) {
		char *copy = malloc(len ? len : 1);
		ow_status strict, status;

		memcpy(copy, sample, len);
		buf_clear(&out);
		assert_int_equal(input_from_memory(&in, &mem, "cut", copy, len, NULL), OW_OK);
		strict = convert(&in, &T, NULL, &out, NULL, &err);
		assert_true(strict == OW_OK || strict == OW_E_CORRUPT);
		status = convert(&in, &T, &options, &out, &result, &err);
		assert_true(status == OW_OK || (strict == OW_E_CORRUPT && status == strict));
		assert_true(len < 10 || status == OW_OK);
		if (status == OW_OK) {
			assert_int_equal(result.damaged, strict != OW_OK);
			assert_int_equal(result.damaged, result.message[0] != 0);
			assert_true(count_records(&out) <= 4);
			assert_true(len < ends[0] || count_records(&out) >= 1);
			assert_true(len < ends[1] || count_records(&out) >= 2);
		}
		input_close(&in);
		free(copy);
	}
	assert_int_equal(count_records(&out), 4);
	buf_release(&out);
}

static void test_flips(void **state)
{
	struct pbtxt_options options = { .salvage = true, .allow_unknown = true };
	char text[sizeof(sample)];
	struct pbtxt_result result;
	struct ow_error err;
	struct input in;
	struct buf out;

	(void)state;
	buf_init(&out, &mem);
	memcpy(text, sample, sizeof(sample));
	for (size_t bit = 0; bit < (sizeof(sample) - 1) * 8; bit++) {
		ow_status status;

		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
		assert_int_equal(input_from_memory(&in, &mem, "x", text, sizeof(sample) - 1, NULL),
				 OW_OK);
		for (int lenient = 0; lenient < 2; lenient++) {
			buf_clear(&out);
			status = convert(&in, &T, lenient ? &options : NULL, &out, &result, &err);
			assert_true(status == OW_OK || status == OW_E_CORRUPT);
			if (status == OW_OK)
				count_records(&out);
		}
		input_close(&in);
		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
	}
	buf_release(&out);
}

static void test_salvage_in_file(void **state)
{
	struct pbtxt_options options = { .salvage = true, .memory_max = 1000 };
	struct pbtxt_result result;
	struct ow_error err;
	struct buf text, out;
	struct input in;
	struct pb r;
	struct pb_field f;
	size_t records = 0;

	(void)state;
	buf_init(&text, &mem);
	buf_init(&out, &mem);
	buf_puts(&text, "t {");
	for (int i = 0; i < 100000; i++)
		buf_printf(&text, " rm { name: 'record' n: %d }\n", i + 1);
	buf_puts(&text, "rm { name: '");
	buf_add_repeat(&text, 'x', 3 << 20);
	assert_int_equal(input_from_memory(&in, &mem, "x", text.ptr, text.len, NULL), OW_OK);
	assert_int_equal(convert(&in, &T, &options, &out, &result, &err), OW_OK);
	assert_true(result.damaged);
	assert_non_null(strstr(result.message, "100001:"));
	r = pb_over(out.ptr, out.len);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.tag, PB_TAG(27, PB_BYTES));
	r = pb_message(&f);
	while (pb_next(&r, &f))
		records++;
	assert_int_equal(r.problem, PB_OK);
	assert_int_equal(records, 100000);
	input_close(&in);
	buf_release(&text);
	buf_release(&out);
}

static void test_without_memory(void **state)
{
	struct buf text, out;
	struct ow_error err;

	(void)state;
	buf_init(&text, &mem);
	buf_init(&out, &mem);
	put_long_text(&text, 500);
	for (int file = 0; file < 2; file++) {
		struct pbtxt_options options = { .memory_max = file ? 100 : 0 };
		bool failed = true;

		for (uint64_t n = 1; failed; n++) {
			struct input in, binary;
			ow_status status;

			mem_fail_after(n, true);
			status = input_from_memory(&in, &mem, "x", text.ptr, text.len, &err);
			if (status == OW_OK) {
				status = pbtxt_to_input(&in, &T, &options, &binary, NULL, &err);
				if (status == OW_OK)
					input_close(&binary);
				input_close(&in);
			}
			mem_fail_after(0, false);
			failed = status != OW_OK;
			assert_true(!failed || status == OW_E_NO_MEMORY);
			assert_true(n < 1000);
		}
	}
	buf_release(&text);
	buf_release(&out);
}

/* ---- leniency ----------------------------------------------------------------------------------- */

static void test_unknown(void **state)
{
	static const char text[] =
		"new: 5 i32: 1 newer { a: 'x' 'y' b: [ { c: -1.5 }, { } ] <> } "
		"newest: [1, 2], re: NEW s: 'x' old: - 5, older: 'a' \"b\" oldest: true; "
		"[an.extension] { x: 1 } i64: 2";
	struct pbtxt_options options = { .allow_unknown = true };
	struct buf out, printed;
	struct pbtxt_result result;
	struct ow_error err;
	struct input in;

	(void)state;
	buf_init(&out, &mem);
	buf_init(&printed, &mem);
	assert_int_equal(input_from_memory(&in, &mem, "x", text, sizeof(text) - 1, NULL), OW_OK);
	if (convert(&in, &T, &options, &out, &result, &err) != OW_OK)
		fail_msg("%s", err.text);
	show_message(&printed, &T, out.ptr, out.len);
	assert_string_equal(buf_cstr(&printed), "i32=1 re=0 s=x i64=2 ");
	assert_int_equal(result.skipped, 8);
	assert_int_equal(convert(&in, &T, NULL, &out, &result, &err), OW_E_CORRUPT);
	input_close(&in);
	for (size_t i = 0; i < 3; i++) {
		static const char *const broken[] = { "new { ]", "new: {", "new: }" };

		assert_int_equal(
			input_from_memory(&in, &mem, "x", broken[i], strlen(broken[i]), NULL),
			OW_OK);
		assert_int_equal(convert(&in, &T, &options, &out, &result, &err), OW_E_CORRUPT);
		input_close(&in);
	}
	buf_release(&out);
	buf_release(&printed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEXT_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEXT_TEST(test_good),
		TEXT_TEST(test_bad),
		TEXT_TEST(test_protoc),
		TEXT_TEST(test_long),
		TEXT_TEST(test_spill_nested),
		TEXT_TEST(test_depth),
		TEXT_TEST(test_truncation),
		TEXT_TEST(test_flips),
		TEXT_TEST(test_salvage_in_file),
		TEXT_TEST(test_without_memory),
		TEXT_TEST(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
