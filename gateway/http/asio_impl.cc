// Boost.Asio and Boost.Beast themselves, compiled once for the whole program.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
