/**
 * For processes that the tests start. Several threads wait for each other when they collect the few young objects of a
 * short life, on cores that other tests want: collecting on one takes a twentieth less processor time in all. The space
 * for young objects has its full size at once: growing it took a twentieth of the processor time of a gateway's start.
 */
export const collectorFlags = ['--no-parallel-scavenge', '--min-semi-space-size=16'];

/**
 * Also for gateways whose memory isn't measured: a start fills the room of `collectorFlags` twice, and copies most of it
 * because it is in use. A larger room saves a tenth of a start's processor time.
 */
export const roomyFlags = ['--min-semi-space-size=64', '--max-semi-space-size=64'];
