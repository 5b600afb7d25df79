import type { Log } from '#contracts/log.ts';
import type { SignIns } from './sign-ins.ts';

/** Interval, ms: after an end in another process, the sockets here are closed within a second. */
const lookMs = 400;

/** Repeats `signIns.look`, one call at a time, until it is stopped. */
export function watchSignIns(signIns: Pick<SignIns, 'look'>, log: Log) {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const look = async () => {
    try {
      await signIns.look();
    } catch (error) {
      // Sign-ins stay valid until the store can be asked again.
      log.debug({ error }, 'sign-ins.not-read');
    }
    if (!isStopped) timer = setTimeout(look, lookMs).unref();
  };
  return {
    start: () => {
      timer = setTimeout(look, lookMs).unref();
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
