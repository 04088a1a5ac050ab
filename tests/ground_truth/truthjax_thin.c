/* The extension module of truthjax.cpp: nothing but a way to it. */
#include "truth.h"

PyObject *Wrapped_PyInit__jax(void);

TRUTH_INIT PyInit__jax(void);

TRUTH_INIT PyInit__jax(void)
{
	return Wrapped_PyInit__jax();
}
