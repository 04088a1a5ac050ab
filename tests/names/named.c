/* A library with names of every sort, for test_native_file. */
#include <unistd.h>

__attribute__((noinline)) static int named_static(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value * 3;
}

__attribute__((noinline, visibility("hidden"))) int named_hidden(int value)
{
	__asm__ volatile("" : "+r"(value));
	return named_static(value) + named_static(value + 1);
}

int named_exported(int value)
{
	return named_hidden(value) - named_static(value);
}

/* Its first call is of another library's function. */
int named_caller(int value)
{
	value += getppid();

	__asm__ volatile("" : "+r"(value));
	return value + 1;
}
