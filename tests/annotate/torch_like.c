/* The shape of torch/csrc/autograd/record_function_ops.cpp under its mangled names, as far
 * as foreign_ranges.c looks at it. With INLINED, the inner function is not one. */
#include <stddef.h>

#define STRING "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

struct record {
	long words[40];
};

void construct(struct record *record,
	       unsigned char scope) __asm__("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
void end(struct record *record) __asm__("_ZN2at14RecordFunction3endEv");
struct record *enter_new(struct record **out, const char *name, const char *args) __asm__(
	"_ZN5torch8autograd8profiler25record_function_enter_newE" STRING "RKSt8optionalIS7_E");
struct record *enter_legacy(struct record *record, const char *name, const char *args);
void exit_new(struct record **record);
void exit_legacy(struct record *record, int *count);

volatile int active;

void construct(struct record *record, unsigned char scope)
{
	record->words[0] = scope;
}

void end(struct record *record)
{
	if (active)
		record->words[1]++;
}

#ifdef INLINED
#define inner(name, args, record) (active ? construct(record, 3) : (void)0)
#else
__attribute__((noinline, noclone)) static void inner(const char *name, const char *args,
						     struct record *record)
{
	if (active)
		record->words[2] = name[0] + (args ? args[0] : 0);
}
#endif

struct record *enter_new(struct record **out, const char *name, const char *args)
{
	construct(*out, 7);
	inner(name, args, *out);
	return *out;
}

struct record *enter_legacy(struct record *record, const char *name, const char *args)
{
	construct(record, 7);
	inner(name, args, record);
	return record;
}

void exit_new(struct record **record)
{
	end(*record);
}

void exit_legacy(struct record *record, int *count)
{
	end(record);
	++*count;
}
