/* A library whose contents test_elf.c knows. */
#include <unistd.h>

int plain_data = 7;

static int plain_static(int x)
{
	return x * plain_data + getpid();
}

int (*plain_table[2])(int) = {plain_static, plain_static};

int plain_exported(int x)
{
	return plain_table[x & 1](x) + plain_data;
}

/* Method tables as CPython has them. */
struct plain_method {
	const char *name;
	int (*function)(int);
	int flags;
	const char *documentation;
};

struct plain_method plain_methods[] = {
	{"first", plain_static, 4, "does it"},
	{"second", plain_exported, 0x82, 0},
	{0, 0, 0, 0},
};
