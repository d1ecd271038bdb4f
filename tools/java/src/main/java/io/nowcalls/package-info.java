/**
 * Client of nowcalls, a durable token server for cluster concurrency control. {@link
 * io.nowcalls.Client} is where to begin.
 */
package io.nowcalls;
