/**
 * For processes that the tests start. Several threads wait for each other when they collect the few young objects of a
 * short life, on cores that other tests want: collecting on one takes a twentieth less processor time in all.
 */
export const oneThreadCollects = ['--no-parallel-scavenge'];
