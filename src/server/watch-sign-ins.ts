import type { Log } from '#contracts/log.ts';
import type { SignIns } from './sign-ins.ts';

/** An end in another process closes the sockets here within a second. */
const lookMs = 400;

/** Looks again and again, one look at a time, until it is stopped. */
export function watchSignIns(signIns: Pick<SignIns, 'look'>, log: Log) {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const look = async () => {
    try {
      await signIns.look();
    } catch (error) {
      // Who is signed in stays so until the store can be asked again.
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
