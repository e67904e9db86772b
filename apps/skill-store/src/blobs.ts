import { BlobStore } from '@ambit/bundle';
import { DB, type SkillDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

/** The store's bytes, by digest. */
@Injectable()
export class SkillBlobs extends BlobStore {
  constructor(@Inject(DB) db: SkillDb) {
    super(db, 'skill-store');
  }
}
