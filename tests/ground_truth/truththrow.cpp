// truththrow: an extension that calls libtruthcxx and catches what comes out of it. It has
// no role itself, so each exception leaves the probed library through its probed frames.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <unistd.h>

#include <stdexcept>

extern "C" {
#include "truthc.h"
}
#include "truthcxx.h"

namespace {

template <typename Call> long count_caught(long count, Call call)
{
	long caught = 0;

	for (long i = 0; i < count; i++) {
		try {
			call(i);
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	return caught;
}

long throw_guarded(long count)
{
	long destroyed = 0;
	long caught = count_caught(count, [&](long) {
		truthcxx::Guard guard(&destroyed);
		guard.run(4);
	});

	return caught == destroyed ? caught : -1;
}

long throw_odd(long number)
{
	if (number & 1)
		throw std::runtime_error("odd");
	return number;
}

// Out of a C function that was handed a C++ function: a C library is passed by too.
long throw_through_c(long count)
{
	return count_caught(count, [](long) { truthc_callback(throw_odd, 2); });
}

void *leave_guarded(void *counter)
{
	truthcxx::Guard guard(static_cast<long *>(counter));

	truthc_leave_thread(2);
	return nullptr;
}

void *sleep_guarded(void *counter)
{
	truthcxx::Guard guard(static_cast<long *>(counter));

	truthc_sleep_in_thread(2);
	return nullptr;
}

// Threads that end inside probed C functions: the C++ callers' destructors run all the same.
long unwind_threads(long count, void *(*thread_main)(void *), bool cancel)
{
	long destroyed = 0;

	for (long i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, nullptr, thread_main, &destroyed))
			break;
		if (cancel) {
			usleep(200); // let it get inside
			pthread_cancel(thread);
		}
		pthread_join(thread, nullptr);
	}
	return destroyed;
}

// throws(way, count): how many exceptions arrived here.
PyObject *meth_throws(PyObject *, PyObject *args)
{
	int way;
	long count, caught = -1;

	if (!PyArg_ParseTuple(args, "Cl", &way, &count))
		return nullptr;
	if (way == 't')
		caught = count_caught(count, [](long i) { truthcxx_throw(i); });
	else if (way == 'd')
		caught = count_caught(count, [](long) { truthcxx_throw_deep(6); });
	else if (way == 'r')
		caught = count_caught(count, [](long) { truthcxx_rethrow(3); });
	else if (way == 'g')
		caught = throw_guarded(count);
	else if (way == 'c')
		caught = throw_through_c(count);
	else if (way == 'x')
		caught = unwind_threads(count, leave_guarded, false);
	else if (way == 'k')
		caught = unwind_threads(count, sleep_guarded, true);
	return PyLong_FromLong(caught);
}

PyMethodDef methods[] = {
	{"throws", meth_throws, METH_VARARGS, nullptr},
	{nullptr, nullptr, 0, nullptr},
};

PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT, "truththrow", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr,
};

} // namespace

extern "C" __attribute__((visibility("default"))) PyObject *PyInit_truththrow()
{
	return PyModule_Create(&module_def);
}
