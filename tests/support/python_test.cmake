# cairn_python_test(<name> COMMAND <script> <argument>... [TIMEOUT <seconds>] [LABELS <label>...]
#                   [ENVIRONMENT <VAR=value>...] [SERIAL] [EPOLL [EPOLL_ENVIRONMENT <VAR=value>...]])
#   A Python script as a ctest case; exit code 77 is "skipped". It finds tests/support.
#   EPOLL adds a second case, epoll.<name>, in which io_uring is not used (label epoll).
find_package(Python3 REQUIRED COMPONENTS Interpreter)
function(cairn_python_test name)
  cmake_parse_arguments(TEST "SERIAL;EPOLL" "TIMEOUT" "COMMAND;LABELS;ENVIRONMENT;EPOLL_ENVIRONMENT" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 600)
  endif()
  list(APPEND TEST_ENVIRONMENT PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support)
  set(cases ${name})
  if(TEST_EPOLL)
    list(APPEND cases epoll.${name})
  endif()
  foreach(case ${cases})
    add_test(NAME ${case} COMMAND ${Python3_EXECUTABLE} ${TEST_COMMAND})
    set_tests_properties(${case} PROPERTIES TIMEOUT ${TEST_TIMEOUT} SKIP_RETURN_CODE 77
      LABELS "${TEST_LABELS}" ENVIRONMENT "${TEST_ENVIRONMENT}")
    if(TEST_SERIAL)
      set_tests_properties(${case} PROPERTIES RUN_SERIAL ON)
    endif()
  endforeach()
  if(TEST_EPOLL)
    set_tests_properties(epoll.${name} PROPERTIES LABELS "epoll;${TEST_LABELS}"
      ENVIRONMENT "${TEST_ENVIRONMENT};CAIRN_POLLER=epoll;${TEST_EPOLL_ENVIRONMENT}")
  endif()
endfunction()

# cairn_on_epoll(<target>): the whole GoogleTest program once more, as epoll.<target>.
function(cairn_on_epoll target)
  add_test(NAME epoll.${target} COMMAND ${target})
  set_tests_properties(epoll.${target} PROPERTIES LABELS epoll ENVIRONMENT CAIRN_POLLER=epoll
    TIMEOUT 900)
endfunction()
