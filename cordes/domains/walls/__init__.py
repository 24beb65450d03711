"""Boxes with conditions on their faces: given values, given normal derivatives, or both mixed."""

from cordes.domains.walls.direction import Direction as Direction
from cordes.domains.walls.walled import FaceData as FaceData
from cordes.domains.walls.walled import FaceDataInTime as FaceDataInTime
from cordes.domains.walls.walled import Walled as Walled
from cordes.domains.walls.walled import directions_of as directions_of
from cordes.domains.walls.walled import walled_part as walled_part
