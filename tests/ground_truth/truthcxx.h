// libtruthcxx: a C++ library whose exported functions may throw through their callers.
#pragma once

extern "C" {
long truthcxx_value(long number); // throws nothing
long truthcxx_catch_inside(long count); // throws and catches, `count` times
long truthcxx_throw(long number); // throws std::runtime_error when number is odd
long truthcxx_throw_deep(long depth); // throws out of `depth` exported frames
long truthcxx_rethrow(long depth); // catches below, throws again
}

namespace truthcxx
{
// A mangled export with a destructor on the way out.
class Guard
{
      public:
	explicit Guard(long *counter);
	~Guard();
	long run(long number);

      private:
	long *counter_;
};
} // namespace truthcxx
