# Installs nowcalls into a directory of its own, builds the consumer with what is there, and runs it
# and the programs.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE out)
  set(out "${out}" PARENT_SCOPE)
endfunction()

set(prefix ${SCRATCH_DIR}/prefix)
file(REMOVE_RECURSE ${SCRATCH_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})

run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${SCRATCH_DIR}/consumer
  -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${SCRATCH_DIR}/consumer)
run(${SCRATCH_DIR}/consumer/consumer)
if(NOT out STREQUAL "unavailable: nobody is there\n")
  message(FATAL_ERROR "the consumer says '${out}'")
endif()

foreach(program nowcalls-server nowcalls-admin nowcalls-bench)
  run(${prefix}/bin/${program} --version)
  if(NOT out MATCHES "^${program} ${VERSION}")
    message(FATAL_ERROR "the version of ${program} is '${out}'")
  endif()
endforeach()
foreach(document README.md src/wire/PROTOCOL.md)
  if(NOT EXISTS ${prefix}/share/doc/nowcalls/${document})
    message(FATAL_ERROR "${document} is not installed")
  endif()
endforeach()
