# cython: language_level=3
# truthcy: what Cython makes of functions, an extension type and a callback.

def noargs():
    return 1

def add(long a, long b):
    return a + b

def callback(function, long count):
    cdef long i
    for i in range(count):
        function()
    return count

cdef class Body:
    cdef long mass

    def step(self, long count):
        self.mass += count
        return self.mass

    def __len__(self):
        return 4

    @property
    def weight(self):
        return self.mass
