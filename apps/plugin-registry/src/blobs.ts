import { BlobStore } from '@ambit/bundle';
import { DB, type PluginDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

/** Packages' bytes, by digest. */
@Injectable()
export class PluginBlobs extends BlobStore {
  constructor(@Inject(DB) db: PluginDb) {
    super(db, 'plugin-registry');
  }
}
