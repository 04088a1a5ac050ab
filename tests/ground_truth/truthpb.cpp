// truthpb: functions, methods and a property bound by pybind11 (all behind one dispatcher).
#include <pybind11/pybind11.h>

#include <stdexcept>

namespace {
struct Body {
	long mass = 1;
	long step(long count)
	{
		return mass += count;
	}
};
} // namespace

PYBIND11_MODULE(truthpb, module)
{
	module.def("add", [](long a, long b) { return a + b; });
	module.def("raises", [] { throw std::runtime_error("translated"); });
	// The callback is called through pybind11's own PyObject_CallObject.
	module.def("callback", [](pybind11::object function, long count) {
		for (long i = 0; i < count; i++)
			function();
		return count;
	});
	pybind11::class_<Body>(module, "Body")
		.def(pybind11::init<>())
		.def("step", &Body::step)
		.def_readwrite("mass", &Body::mass);
}
