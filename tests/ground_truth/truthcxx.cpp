#include "truthcxx.h"

#include <stdexcept>

long truthcxx_value(long number)
{
	return number * 7;
}

long truthcxx_throw(long number)
{
	if (number & 1)
		throw std::runtime_error("odd");
	return number;
}

long truthcxx_catch_inside(long count)
{
	long caught = 0;

	for (long i = 0; i < count; i++) {
		try {
			truthcxx_throw(1);
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	return caught;
}

long truthcxx_throw_deep(long depth)
{
	if (depth <= 1)
		return truthcxx_throw(1);
	return truthcxx_throw_deep(depth - 1) + 1;
}

long truthcxx_rethrow(long depth)
{
	try {
		return truthcxx_throw_deep(depth);
	} catch (const std::runtime_error &) {
		throw;
	}
}

namespace truthcxx {
Guard::Guard(long *counter) : counter_(counter)
{
}

Guard::~Guard()
{
	++*counter_;
}

long Guard::run(long number)
{
	return truthcxx_throw_deep(number);
}
} // namespace truthcxx
