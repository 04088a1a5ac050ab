// truthnb: the same as truthpb, bound by nanobind (functions reached by vectorcall).
#include <nanobind/nanobind.h>

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

NB_MODULE(truthnb, module)
{
	module.def("add", [](long a, long b) { return a + b; });
	module.def("raises", []() -> long { throw std::runtime_error("translated"); });
	module.def("callback", [](nanobind::object function, long count) {
		for (long i = 0; i < count; i++)
			function();
		return count;
	});
	nanobind::class_<Body>(module, "Body")
		.def(nanobind::init<>())
		.def("step", &Body::step)
		.def_rw("mass", &Body::mass);
}
