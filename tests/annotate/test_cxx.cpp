// The header from C++: an operation lasts as long as its object, exceptions included.
#include <cstdio>
#include <stdexcept>

#include "rlscope_annotate.h"
#include "userspace/annotate/annotate_wire.h"

static unsigned int depth()
{
	return rlscope_annotate_thread_record()->depth;
}

static void fail_inside()
{
	rlscope::operation inner("inner");

	if (depth() == 2)
		throw std::runtime_error("as planned");
}

int main()
{
	rlscope::operation outer("outer");

	try {
		fail_inside();
	} catch (const std::runtime_error &) {
		if (depth() == 1)
			return 0;
	}
	std::fprintf(stderr, "depth is %u\n", depth());
	return 1;
}
