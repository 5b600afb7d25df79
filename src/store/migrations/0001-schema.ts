import { accessTables } from './0001/access.ts';
import { deliveryTables } from './0001/delivery.ts';
import { intakeTables } from './0001/intake.ts';
import { laneTables } from './0001/lanes.ts';

/** Every table of the first version. */
export const firstTables = { ...intakeTables, ...laneTables, ...deliveryTables, ...accessTables };
