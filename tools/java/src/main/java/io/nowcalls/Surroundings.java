package io.nowcalls;

import java.util.function.Function;
import java.util.function.LongBinaryOperator;
import java.util.function.LongSupplier;

/** What a session gets from outside. Times are in microseconds. */
final class Surroundings {
    Function<Held, Permit> makePermit;
    LongBinaryOperator uniform; // A random pause between two.
    LongSupplier requestIds;
    LongSupplier clock;
    long instance; // Of hello; 0 for none.
}
