// truthjax: a stand-in for jaxlib since 0.6. Everything lies in libjax_common.so, behind a thin extension module
// (truthjax_thin.c). It calls Python back on the caller's thread and on a thread of its own, as XLA does.
#include <nanobind/nanobind.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <unistd.h>

#include "spin.h"

namespace
{

// One thread that lives until the process ends.
class Pool
{
      public:
	long run(std::function<void()> work)
	{
		std::unique_lock<std::mutex> lock(mutex);

		if (!started) {
			started = true;
			std::thread([this] { serve(); }).detach();
		}
		todo = std::move(work);
		changed.notify_all();
		changed.wait(lock, [this] { return !todo; });
		return tid;
	}

      private:
	void serve()
	{
		std::unique_lock<std::mutex> lock(mutex);

		tid = gettid();
		for (;;) {
			changed.wait(lock, [this] { return bool(todo); });
			todo();
			todo = nullptr;
			changed.notify_all();
		}
	}

	std::mutex mutex;
	std::condition_variable changed;
	std::function<void()> todo;
	bool started = false;
	long tid = 0;
};

Pool *the_pool()
{
	static Pool *pool = new Pool; // never freed: its thread has no end
	return pool;
}

long call(const nanobind::object &function, long count)
{
	for (long i = 0; i < count; i++)
		function(i);
	return count;
}

long compute(long microseconds)
{
	uint32_t sum = 1;
	nanobind::gil_scoped_release release;

	/* In code of its own, where samples find it: the clock is the kernel's. */
	for (uint64_t end_ns = truth_now_ns() + (uint64_t)microseconds * 1000;
	     truth_now_ns() < end_ns;)
		for (int i = 0; i < 10000; i++)
			sum = sum * 1664525u + 1013904223u;
	return (long)sum;
}

// The id of the thread that called.
long call_on_pool(const nanobind::object &function, long count)
{
	nanobind::gil_scoped_release release;

	return the_pool()->run([&] {
		nanobind::gil_scoped_acquire acquire;

		call(function, count);
	});
}

} // namespace

NB_MODULE(truthjax, module)
{
	module.def("compute", &compute);
	module.def("call_here", &call);
	module.def("call_on_pool", &call_on_pool);
}

extern "C" __attribute__((visibility("default"))) PyObject *Wrapped_PyInit__jax()
{
	return PyInit_truthjax();
}
