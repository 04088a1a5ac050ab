/* truthsim: an extension with the role "simulator" whose calls can be counted.
 *
 * README.md says what each way in counts for. The module is single-phase so that one
 * source serves CPython 3.8 to 3.14.
 */
#include "truth.h"

__thread struct truth_counts truth_counts;

static struct PyModuleDef truthsim_module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "truthsim",
	.m_size = -1,
};

TRUTH_INIT PyInit_truthsim(void)
{
	PyObject *module = PyModule_Create(&truthsim_module);

	if (!module)
		return NULL;
	if (truth_methods_add(module) || truth_static_types_add(module) ||
	    truth_heap_types_add(module) || truth_callbacks_add(module)) {
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
