import type { Config } from '../../config/config.ts';
import { askProcesses, downText } from '../ask-processes.ts';
import { type DoctorCheck, failed, ok, warning } from './check.ts';

/** Health of the folder's running processes, the same as `/readyz` and `parley status`. */
export async function checkProcesses({ dataDir }: Pick<Config, 'dataDir'>): Promise<readonly DoctorCheck[]> {
  return (await askProcesses(dataDir)).map(({ role, pid, url, health, down }) => {
    const name = `${role === 'all' ? 'gateway' : role} ${pid}`;
    switch (health) {
      case 'ready':
        return ok(name, `ready, at ${url}`);
      case 'not ready':
        return failed(name, down.map(downText).join('\n'), 'check the log of that process');
      case 'silent':
        return warning(
          name,
          `alive, but not responding at ${url}`,
          'it may be starting or stopping; otherwise check its log',
        );
      default:
        return health satisfies never;
    }
  });
}
