/* Refuse: an error and the clause that says why, in one step. */
#ifndef RLS_REFUSE_H
#define RLS_REFUSE_H

#include <stdarg.h>
#include <stdio.h>

#define RLS_INJECT_WHY_BYTES 240

__attribute__((format(printf, 3, 4))) static inline int
rls_refuse(char why[RLS_INJECT_WHY_BYTES], int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, RLS_INJECT_WHY_BYTES, format, arguments);
	va_end(arguments);
	return error;
}

#endif
